//! `tools/call`: arguments and result pass byte for byte (invariant W1).
//!
//! What a model could do something about is a result that says so (`isError`); what only a client could is an error
//! (mcp.md §7).

use caribou_core::era::Era;
use caribou_core::failure::Code;
use caribou_core::raw::{Members, text};
use caribou_mcp::mirrored_params;
use caribou_runtime::{CallTool, Shape, VerbError};
use serde_json::json;
use serde_json::value::RawValue;

use crate::asking::{MAX_ROUNDS, Questions};
use crate::fault::Fault;
use crate::notices::Notices;
use crate::place::Place;
use crate::relay;
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
        demand_mirrored(work, tool, arguments)?;
    }
    let mut brought = match &params {
        Some(params) if is_modern => relay::brought_back(work, params, &name)?,
        _ => Vec::new(),
    };
    for _ in 0..MAX_ROUNDS {
        let call = CallTool {
            name: visible.clone(),
            arguments: arguments.map(ToOwned::to_owned),
            meta: work.meta.passed.iter().cloned().chain(brought).collect(),
            caller: work.client.asked.caller.clone(),
            scope: work.client.scope.clone(),
            secrets: work.meta.secrets.clone(),
            run_id: None,
            tool_call_id: None,
            task: false,
            timeout: None,
            progress: notices.sink(),
            shape: Shape::Raw,
            request_id: work.request_id(),
        };
        let result = match work.endpoint.runtime.call_tool(call).await {
            Ok(called) => called.result,
            Err(error) => return told(error, work),
        };
        if is_modern {
            return Ok(relay::with_state_sealed(work, result.get(), &name).into_owned());
        }
        let (Some(questions), Some(session)) = (Questions::of(&result), &work.client.session) else {
            return Ok(Box::<str>::from(result).into_string());
        };
        brought = questions.ask(&work.endpoint.answers, session, notices).await?;
    }
    Err(Fault::not_answered("the server never stops asking"))
}

/// The visible name of a tool of this place, and its `Tool` object if it is known.
async fn find(work: &Work, name: &str) -> Result<(String, Option<std::sync::Arc<RawValue>>), VerbError> {
    let (runtime, client) = (&work.endpoint.runtime, &work.client);
    match &client.asked.place {
        Place::All => Ok((name.to_owned(), runtime.known_tool(name))),
        Place::One(server) => {
            let tool = runtime.tool_of(&client.asked.caller, &client.scope, server, name).await?;
            Ok((tool.name.to_string(), Some(tool.tool)))
        }
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
    if error.upstream.is_some() || matches!(error.code, Code::Invalid | Code::NotFound | Code::Busy) {
        return Err(error.into());
    }
    let about = json!({ "code": error.code.as_str(), "request_id": work.request_id().as_str() });
    let content = json!([{ "type": "text", "text": error.detail }]);
    Ok(json!({ "content": content, "isError": true, "_meta": { "io.caribou/error": about } }).to_string())
}
