//! Questions of modern servers on their way to a modern client, and its answers on their way back (mcp.md §4).
//!
//! Nothing is kept here: the server's state travels with the client, marked, so that only this client can bring it
//! back, to the same place, about the same thing and unchanged (invariant P1; mcp.md §17, S15).

use std::borrow::Cow;

use caribou_core::raw::{Members, object, text};
use caribou_ports::mcp::relayed::{INPUT_RESPONSES, REQUEST_STATE};
use serde_json::value::{RawValue, to_raw_value};

use crate::fault::Fault;
use crate::work::Work;

const STATE: &str = "requestState";
const ANSWERS: &str = "inputResponses";

/// What the state of a request belongs to.
fn about<'w>(work: &'w Work, named: &'w str) -> [&'w str; 3] {
    [work.client.asked.place.server().map_or("", |server| server.as_str()), &work.method, named]
}

/// What a client brings back with a request about `named`: the members for a call.
///
/// # Errors
/// Its state is none that it was given.
pub(crate) fn brought_back(
    work: &Work,
    params: &Members<'_>,
    named: &str,
) -> Result<Vec<(String, Box<RawValue>)>, Fault> {
    let mut brought = Vec::new();
    if let Some(answers) = params.get(ANSWERS) {
        brought.push((INPUT_RESPONSES.to_owned(), answers.to_owned()));
    }
    if let Some(state) = params.get(STATE) {
        brought.push((REQUEST_STATE.to_owned(), unsealed(work, state, named)?));
    }
    Ok(brought)
}

fn unsealed(work: &Work, state: &RawValue, named: &str) -> Result<Box<RawValue>, Fault> {
    let caller = &work.client.asked.caller;
    let opened = text(state).and_then(|state| work.endpoint.runtime.unseal(caller, &about(work, named), &state));
    let opened = opened.and_then(|state| to_raw_value(&state).ok());
    opened.ok_or_else(|| Fault::invalid_params("`requestState` is none that was given for this request"))
}

/// `params` with the state as the server gave it.
///
/// # Errors
/// It is none that the client was given.
pub(crate) fn with_state_opened(work: &Work, params: Box<RawValue>, named: &str) -> Result<Box<RawValue>, Fault> {
    let Some(members) = Members::of(&params) else { return Ok(params) };
    let Some(state) = members.get(STATE) else { return Ok(params) };
    let opened = unsealed(work, state, named)?;
    Ok(replaced(&members, &opened).unwrap_or_default())
}

/// `result` as the client may keep it: the state of one that asks something is marked.
pub(crate) fn with_state_sealed<'r>(work: &Work, result: &'r str, named: &str) -> Cow<'r, str> {
    // Looked for first: results are large, and few ask.
    if !result.contains(STATE) {
        return Cow::Borrowed(result);
    }
    let raw: Option<&RawValue> = serde_json::from_str(result).ok();
    let Some(members) = raw.and_then(Members::of) else { return Cow::Borrowed(result) };
    let is_asking = members.get("resultType").is_some_and(|kind| kind.get() == "\"input_required\"");
    let Some(state) = members.get(STATE).and_then(text).filter(|_| is_asking) else { return Cow::Borrowed(result) };
    let sealed = work.endpoint.runtime.seal(&work.client.asked.caller, &about(work, named), &state);
    let sealed = to_raw_value(&sealed).ok().and_then(|sealed| replaced(&members, &sealed));
    sealed.map_or(Cow::Borrowed(result), |result| Cow::Owned(Box::<str>::from(result).into_string()))
}

fn replaced(members: &Members<'_>, state: &RawValue) -> Option<Box<RawValue>> {
    let members = members.0.iter().map(|(name, value)| (name.as_ref(), if name == STATE { state } else { *value }));
    RawValue::from_string(object(members)).ok()
}
