//! `tools/call`: arguments and result pass byte for byte (invariant W1).
//!
//! What a model could do something about is a result that says so (`isError`); what only a client could is an error
//! (mcp.md §7).

use caribou_core::era::Era;
use caribou_core::failure::Code;
use caribou_core::namespace::shown_result;
use caribou_core::raw::{Members, text};
use caribou_core::task::native::{Support, Wish};
use caribou_mcp::mirrored_params;
use caribou_runtime::{CallTool, ListedTool, Shape, VerbError};
use serde_json::json;
use serde_json::value::RawValue;

use super::waiting::Waiting;
use crate::asking::{MAX_ROUNDS, Questions};
use crate::fault::Fault;
use crate::notices::Notices;
use crate::place::Place;
use crate::relay::{self, About};
use crate::tasks::made;
use crate::work::Work;

pub(super) async fn run(work: &mut Work, notices: &Notices) -> Result<String, Fault> {
    let params = work.params.take();
    let params = params.as_deref().and_then(Members::of);
    let is_modern = work.client.era == Era::Modern;
    let named = params.as_ref().and_then(|params| Some((text(params.get("name")?)?, params.get("arguments"))));
    let Some((name, arguments)) = named else { return Err(Fault::invalid_params("`params.name` must be a string")) };
    let (visible, tool) = match find(work, &name).await {
        Ok(found) => found,
        Err(error) => return told(error, work),
    };
    if let Some(tool) = &tool {
        demand_mirrored(work, &tool.tool, arguments)?;
    }
    let wish = wish(work, params.as_ref(), tool.as_ref())?;
    let about = About { named: &name, arguments };
    let mut brought = match &params {
        Some(params) if is_modern => relay::brought_back(work, params, about)?,
        _ => Vec::new(),
    };
    for _ in 0..MAX_ROUNDS {
        let call = request(work, &visible, (arguments, wish), brought, notices);
        let runtime = &work.endpoint.runtime;
        let called = match &work.client.asked.place {
            Place::All => runtime.call_tool(call).await,
            Place::One(_) => runtime.call_shown_tool(call).await,
        };
        let called = match called {
            Ok(called) => called,
            // Who asked for a task takes no result in its place.
            Err(error) if wish == Wish::Asked => return Err(error.into()),
            Err(error) => return told(error, work),
        };
        if let Some(task) = called.task {
            return made::answer(work, notices, task, (called.result, wish == Wish::Asked)).await;
        }
        let result = shown(work, &visible, called.result).await;
        if is_modern {
            return Ok(relay::with_state_sealed(work, result.get(), about).into_owned());
        }
        let (Some(questions), Some(desk)) = (Questions::of(&result), work.desk(notices)) else {
            return if wish == Wish::Asked {
                kept(work, notices, &visible, result).await
            } else {
                Ok(Box::<str>::from(result).into_string())
            };
        };
        let waiting = Waiting::new(questions.farewell().map(|gone| {
            let (runtime, call) = (runtime.clone(), request(work, &visible, (arguments, wish), gone, notices));
            async move { drop(runtime.call_tool(call).await) }
        }));
        brought = questions.ask(&desk).await?;
        waiting.over();
    }
    Err(Fault::not_answered("the server never stops asking"))
}

/// What the client says of tasks (mcp.md §9, who decides; §14.5).
///
/// # Errors
/// A legacy client asks for one of a tool that makes none.
fn wish(work: &Work, params: Option<&Members<'_>>, tool: Option<&ListedTool>) -> Result<Wish, Fault> {
    let takes = work.client.takes_tasks;
    if work.client.era == Era::Modern {
        return Ok(if takes { Wish::Taken } else { Wish::Refused });
    }
    let asks = params.and_then(|params| params.get("task")).is_some_and(|task| task.get().starts_with('{'));
    // A receiver that has no tasks takes no notice.
    if !asks || !takes || !work.endpoint.runtime.follows_tasks() {
        return Ok(Wish::Spared);
    }
    match tool {
        Some(tool) if tool.support == Support::Forbidden => Err(Fault::no_task(&tool.name)),
        _ => Ok(Wish::Asked),
    }
}

/// Whoever asked for a task is answered by one, though its server answered at once (mcp.md §17, B9).
async fn kept(work: &Work, notices: &Notices, visible: &str, result: Box<RawValue>) -> Result<String, Fault> {
    let named = (&work.client.scope, &work.client.asked.request_id);
    let task = work.endpoint.runtime.keep_answer(named, visible, &result).await?;
    made::answer(work, notices, task, (result, true)).await
}

/// The call, with what is brought back.
fn request(
    work: &Work,
    visible: &str,
    (arguments, wish): (Option<&RawValue>, Wish),
    brought: Vec<(String, Box<RawValue>)>,
    notices: &Notices,
) -> CallTool {
    CallTool {
        name: visible.to_owned(),
        arguments: arguments.map(ToOwned::to_owned),
        meta: work.meta.passed.iter().cloned().chain(brought).collect(),
        caller: work.client.asked.caller.clone(),
        scope: work.client.scope.clone(),
        secrets: work.meta.secrets.clone(),
        run_id: None,
        tool_call_id: None,
        task: wish,
        timeout: None,
        progress: notices.sink(),
        shape: Shape::Raw,
        request_id: work.request_id(),
    }
}

/// The visible name of a tool of this place, and the tool if it is known.
async fn find(work: &Work, name: &str) -> Result<(String, Option<ListedTool>), VerbError> {
    let (runtime, client) = (&work.endpoint.runtime, &work.client);
    match &client.asked.place {
        Place::All => Ok((name.to_owned(), runtime.known_tool(name))),
        Place::One(server) => {
            let tool = runtime.tool_of(&client.asked.caller, &client.scope, server, name).await?;
            Ok((tool.name.to_string(), Some(tool)))
        }
    }
}

/// The result with the resources in it as they are read back here: among those of other servers they have other URIs.
async fn shown(work: &Work, tool: &str, result: Box<RawValue>) -> Box<RawValue> {
    // Looked for first: results are large, and few hold any.
    if work.client.asked.place != Place::All || !result.get().contains("\"uri\"") {
        return result;
    }
    match work.endpoint.runtime.reader_of(&work.client.scope, tool).await {
        Some(server) => shown_result(&work.method, &result, &server.label()).into_owned(),
        None => result,
    }
}

/// In the modern era annotated arguments are mirrored by headers, which say the same (mcp.md §3.1).
fn demand_mirrored(work: &Work, tool: &RawValue, arguments: Option<&RawValue>) -> Result<(), Fault> {
    if work.client.era != Era::Modern {
        return Ok(());
    }
    // A tool whose annotations are wrong has none that count.
    for param in mirrored_params(tool).unwrap_or_default() {
        if !param.agrees(arguments, work.mirrored.get(param.header())) {
            let why = format!("the header `{}` does not say what the argument does", param.header());
            return Err(Fault::header_mismatch(why));
        }
    }
    Ok(())
}

/// How a call that was not made, or came to nothing, is told.
fn told(error: VerbError, work: &Work) -> Result<String, Fault> {
    // A model gets no token: that is the client's part (mcp.md 10.1).
    let is_clients = error.upstream.is_some() || error.required_scopes.is_some();
    if is_clients || matches!(error.code, Code::Invalid | Code::NotFound | Code::Busy) {
        return Err(error.into());
    }
    let about = json!({ "code": error.code.as_str(), "request_id": work.request_id().as_str() });
    let content = json!([{ "type": "text", "text": error.detail }]);
    Ok(json!({ "content": content, "isError": true, "_meta": { "io.caribou/error": about } }).to_string())
}
