//! `tasks/get`, `tasks/list`, `tasks/result`, `tasks/update` and `tasks/cancel`, each in the eras that have it (mcp.md §9).
//!
//! A task of somebody else, and one that there never was, are told alike (invariant P1).

use std::time::Duration;

use caribou_core::era::Era;
use caribou_core::failure::Code;
use caribou_core::raw::{Members, object, text};
use caribou_runtime::{PageKey, VerbError};
use serde_json::value::{RawValue, to_raw_value};

use crate::fault::Fault;
use crate::notices::Notices;
use crate::tasks::ended;
use crate::tasks::found::{demand_ability, find, reach};
use crate::tasks::made::{every, outcome};
use crate::tasks::shown;
use crate::work::Work;

/// Tasks of one page.
const PAGE: u32 = 25;

/// How long `tasks/result` waits for a client that reads a stream, and can see that it is still waited for.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// How long it waits for one that reads none: whether that one is still there, nobody can tell.
const PATIENCE_UNHEARD: Duration = Duration::from_secs(300);

/// Whether it is one of these methods, in this era.
pub(super) fn is_one(method: &str, era: Era) -> bool {
    match era {
        Era::Modern => matches!(method, "tasks/get" | "tasks/update" | "tasks/cancel"),
        Era::Legacy => matches!(method, "tasks/get" | "tasks/list" | "tasks/result" | "tasks/cancel"),
    }
}

pub(super) async fn run(work: &Work, notices: &Notices) -> Result<String, Fault> {
    demand_ability(work)?;
    match (&*work.method, work.client.era) {
        ("tasks/get", Era::Modern) => Ok(shown::detailed(&find(work, &named(work)?).await?, poll(work))),
        ("tasks/get", Era::Legacy) => Ok(shown::legacy(&find(work, &named(work)?).await?, poll(work))),
        ("tasks/list", _) => list(work).await,
        ("tasks/result", _) => result(work, notices).await,
        ("tasks/update", _) => update(work).await,
        ("tasks/cancel", Era::Modern) => wish_cancelled(work).await,
        ("tasks/cancel", Era::Legacy) => cancel(work).await,
        _ => Err(Fault::no_method(&work.method)),
    }
}

fn poll(work: &Work) -> Duration {
    every(&work.endpoint.runtime)
}

/// The task that a request is about.
fn named(work: &Work) -> Result<String, Fault> {
    let params = work.params.as_deref().and_then(Members::of);
    let named = params.as_ref().and_then(|params| text(params.get("taskId")?));
    let named = named.ok_or_else(|| Fault::invalid_params("`params.taskId` must be a string"))?;
    Ok(named.into_owned())
}

/// The newest first, page by page. A cursor is of this client, this place and this thread.
async fn list(work: &Work) -> Result<String, Fault> {
    let (runtime, caller, reach) = (&work.endpoint.runtime, &work.client.asked.caller, reach(&work.client));
    let place = reach.server.as_ref().map_or("", |server| server.as_str());
    let about = ["tasks/list", place, reach.thread.as_ref().map_or("", |thread| thread.as_str())];
    let params = work.params.as_deref().and_then(Members::of);
    let cursor = params.as_ref().and_then(|params| params.get("cursor")).filter(|cursor| cursor.get() != "null");
    let before = match cursor {
        None => None,
        Some(cursor) => {
            let key = text(cursor).and_then(|cursor| runtime.unseal(caller, &about, &cursor));
            let key = key.and_then(|key| PageKey::parse(&key));
            Some(key.ok_or_else(|| Fault::invalid_params("`params.cursor` is none that was given out for this list"))?)
        }
    };
    let (tasks, next) = runtime.client_tasks(caller, &reach, before, PAGE).await?;
    let tasks: Vec<_> = tasks.iter().map(|task| shown::legacy(task, poll(work))).collect();
    let next = next.map(|key| runtime.seal(caller, &about, &key.to_string()));
    let next = next.and_then(|next| to_raw_value(&next).ok());
    let tasks = RawValue::from_string(format!("[{}]", tasks.join(","))).map_err(|_| Fault::bug())?;
    Ok(object([("tasks", &*tasks)].into_iter().chain(next.as_deref().map(|next| ("nextCursor", next)))))
}

/// What the call would have been answered with, as soon as there is something.
async fn result(work: &Work, notices: &Notices) -> Result<String, Fault> {
    let task = find(work, &named(work)?).await?;
    let name = task.stored.task.to_string();
    let patience = if notices.is_heard() { PATIENCE } else { PATIENCE_UNHEARD };
    let Some(ended) = ended::wait(work, notices, task, patience).await? else {
        let detail = format!("the task `{name}` goes on; ask for its result again");
        return Err(VerbError::new(Code::Timeout, detail).into());
    };
    let result = outcome(ended.view(Era::Legacy).outcome, &name)?;
    let result = RawValue::from_string(result).map_err(|_| Fault::bug())?;
    Ok(shown::related(&result, &name))
}

/// Answers of a modern client. Those to what is not asked, or not any more, are passed over.
async fn update(work: &Work) -> Result<String, Fault> {
    let params = work.params.as_deref().and_then(Members::of);
    let answers = params.as_ref().and_then(|params| Members::of(params.get("inputResponses")?));
    let answers = answers.ok_or_else(|| Fault::invalid_params("`params.inputResponses` must be an object"))?;
    let task = find(work, &named(work)?).await?;
    let questions = task.view(Era::Modern).questions;
    let mut refused = None;
    for (name, answer) in &answers.0 {
        let question = questions.iter().find(|question| *question.name == **name);
        let Some(body) = question.and_then(|question| question.body(answer)) else { continue };
        match ended::bring(work, &task, name, &body).await {
            // The others are none the worse for it.
            Err(error) if error.code == Code::Invalid => {
                refused = Some(VerbError { detail: format!("`inputResponses.{name}`: {}", error.detail), ..error });
            }
            done => done?,
        }
    }
    refused.map_or_else(|| Ok("{}".to_owned()), |refused| Err(refused.into()))
}

/// A wish in the modern era: what comes of it is read afterwards, and repeating it is harmless.
async fn wish_cancelled(work: &Work) -> Result<String, Fault> {
    let task = find(work, &named(work)?).await?;
    let (runtime, caller, stored) = (&work.endpoint.runtime, &work.client.asked.caller, &task.stored);
    if !stored.snapshot.status.is_terminal() {
        runtime.cancel_task(caller, &stored.scope, &stored.task.to_string()).await?;
    }
    Ok("{}".to_owned())
}

/// A command in the legacy era: the task is cancelled with the answer. One that has ended takes none.
async fn cancel(work: &Work) -> Result<String, Fault> {
    let task = find(work, &named(work)?).await?;
    let (runtime, caller, stored) = (&work.endpoint.runtime, &work.client.asked.caller, &task.stored);
    let name = stored.task.to_string();
    let ended = || Fault::invalid_params(format!("the task `{name}` has ended already"));
    if task.view(Era::Legacy).word.is_terminal() {
        return Err(ended());
    }
    let cancelled = runtime.cancel_task(caller, &stored.scope, &name).await?;
    // It ended in this very moment.
    if !cancelled.is_cancel_requested {
        return Err(ended());
    }
    Ok(shown::legacy(&find(work, &name).await?, poll(work)))
}
