//! Which tasks a request may speak of, and whether its client may speak of any.

use caribou_core::era::Era;
use caribou_runtime::{ClientTask, TaskReach};

use crate::fault::Fault;
use crate::work::{Client, Work};

/// Those of its user: in the thread that it names, if it names one, and of the server that it came to.
pub(crate) fn reach(client: &Client) -> TaskReach {
    TaskReach {
        user: client.scope.user.clone(),
        thread: client.names_thread.then(|| client.scope.thread.clone()),
        server: client.asked.place.server().cloned(),
    }
}

/// One of them.
///
/// # Errors
/// There is none of this name within reach, or the store cannot be asked.
pub(crate) async fn find(work: &Work, task: &str) -> Result<ClientTask, Fault> {
    Ok(work.endpoint.runtime.client_task(&work.client.asked.caller, &reach(&work.client), task).await?)
}

/// Refuses requests about tasks where there are none, and of clients that can do nothing about one.
///
/// # Errors
/// There is no such method here; in the modern era the client did not declare the extension (mcp.md §9.2).
pub(crate) fn demand_ability(work: &Work) -> Result<(), Fault> {
    let is_followed = work.endpoint.runtime.follows_tasks();
    match work.client.era {
        _ if !is_followed => Err(Fault::no_method(&work.method)),
        Era::Modern if !work.client.takes_tasks => Err(Fault::tasks_undeclared()),
        Era::Legacy if !work.client.takes_tasks => Err(Fault::no_method(&work.method)),
        _ => Ok(()),
    }
}
