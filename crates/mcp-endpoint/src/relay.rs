//! Questions of servers on their way to a modern client, and its answers on their way back (mcp.md §4).
//!
//! Nothing is kept here: the server's state travels with the client, marked, so that only this client can bring it
//! back, to the same place, with the same request, unchanged and not for ever (invariant P1; mcp.md 14.6 and §17, S15).

use std::borrow::Cow;
use std::time::Duration;

use caribou_core::raw::{Members, object, text};
use caribou_ports::mcp::relayed::{INPUT_RESPONSES, REQUEST_STATE};
use caribou_runtime::wall_clock_ms;
use serde_json::value::{RawValue, to_raw_value};

use crate::fault::Fault;
use crate::work::Work;

const STATE: &str = "requestState";
const ANSWERS: &str = "inputResponses";

/// How long a state may be brought back. The clocks of two replicas may differ: what depends on the time is the server's
/// own patience, which is far shorter, and this only keeps states from being good for ever.
const GOOD_FOR: Duration = Duration::from_secs(3_600);

/// What a request is about, as far as it must be the same when its state is brought back.
#[derive(Clone, Copy)]
pub(crate) struct About<'r> {
    /// The tool, prompt or resource.
    pub(crate) named: &'r str,
    /// The arguments; absent and empty are the same.
    pub(crate) arguments: Option<&'r RawValue>,
}

impl About<'_> {
    /// The parts that a mark is made of.
    fn parts(&self, work: &Work) -> [String; 4] {
        let server = work.client.asked.place.server().map_or("", |server| server.as_str());
        let arguments = self.arguments.map(|arguments| compact(arguments.get()));
        let arguments = arguments.filter(|arguments| arguments != "null").unwrap_or_else(|| "{}".to_owned());
        [server.to_owned(), work.method.clone(), self.named.to_owned(), arguments]
    }
}

/// The text without blanks between its tokens: a client may write the same request otherwise the second time.
fn compact(json: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let kept = |c: &char| {
        let is_kept = is_text || !c.is_ascii_whitespace();
        if is_escaped {
            is_escaped = false;
        } else if is_text && *c == '\\' {
            is_escaped = true;
        } else if *c == '"' {
            is_text = !is_text;
        }
        is_kept
    };
    json.chars().filter(kept).collect()
}

/// What a client brings back with a request: the members for a call.
///
/// # Errors
/// Its state is none that it was given for this request, or is too old.
pub(crate) fn brought_back(
    work: &Work,
    params: &Members<'_>,
    about: About<'_>,
) -> Result<Vec<(String, Box<RawValue>)>, Fault> {
    let mut brought = Vec::new();
    if let Some(answers) = params.get(ANSWERS) {
        brought.push((INPUT_RESPONSES.to_owned(), answers.to_owned()));
    }
    if let Some(state) = params.get(STATE) {
        brought.push((REQUEST_STATE.to_owned(), unsealed(work, state, about)?));
    }
    Ok(brought)
}

/// The parameters without what a client brings back.
pub(crate) fn without_brought(params: &Members<'_>) -> Box<RawValue> {
    let kept = params.0.iter().filter(|(name, _)| name != STATE && name != ANSWERS);
    RawValue::from_string(object(kept.map(|(name, value)| (name.as_ref(), *value)))).unwrap_or_default()
}

fn unsealed(work: &Work, state: &RawValue, about: About<'_>) -> Result<Box<RawValue>, Fault> {
    let parts = about.parts(work);
    let parts = parts.each_ref().map(String::as_str);
    let opened = text(state).and_then(|state| work.endpoint.runtime.unseal(&work.client.asked.caller, &parts, &state));
    let opened = opened.as_deref().and_then(|opened| opened.split_once('.'));
    let none = || Fault::invalid_params("`requestState` is none that was given for this request");
    let (until, state) = opened.ok_or_else(none)?;
    if until.parse().unwrap_or(0) < now() {
        return Err(Fault::invalid_params("`requestState` is too old: make the request anew"));
    }
    to_raw_value(state).map_err(|_| none())
}

/// `result` as the client may keep it: the state of one that asks something is marked.
pub(crate) fn with_state_sealed<'r>(work: &Work, result: &'r str, about: About<'_>) -> Cow<'r, str> {
    // Looked for first: results are large, and few ask.
    if !result.contains(STATE) {
        return Cow::Borrowed(result);
    }
    let raw: Option<&RawValue> = serde_json::from_str(result).ok();
    let Some(members) = raw.and_then(Members::of) else { return Cow::Borrowed(result) };
    let is_asking = members.get("resultType").is_some_and(|kind| kind.get() == "\"input_required\"");
    let Some(state) = members.get(STATE).and_then(text).filter(|_| is_asking) else { return Cow::Borrowed(result) };
    let parts = about.parts(work);
    let parts = parts.each_ref().map(String::as_str);
    let state = format!("{}.{state}", now() + GOOD_FOR.as_secs());
    let sealed = work.endpoint.runtime.seal(&work.client.asked.caller, &parts, &state);
    let sealed = to_raw_value(&sealed).ok().and_then(|sealed| replaced(&members, &sealed));
    sealed.map_or(Cow::Borrowed(result), |result| Cow::Owned(Box::<str>::from(result).into_string()))
}

fn replaced(members: &Members<'_>, state: &RawValue) -> Option<Box<RawValue>> {
    let members = members.0.iter().map(|(name, value)| (name.as_ref(), if name == STATE { state } else { *value }));
    RawValue::from_string(object(members)).ok()
}

/// Seconds since 1970.
fn now() -> u64 {
    u64::try_from(wall_clock_ms() / 1_000).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_request_written_otherwise_is_the_same() {
        // mcp.md 14.6, method and digest of parameters.
        let one = r#"{"a" : [1.0, "x  y\\" , "\" {"], "b":null}"#;
        assert_eq!(compact(one), r#"{"a":[1.0,"x  y\\","\" {"],"b":null}"#);
        assert_ne!(compact(r#"{"a":1}"#), compact(r#"{"a":2}"#));
    }
}
