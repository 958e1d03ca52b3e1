//! The kind of a result of the modern era.

use caribou_ports::mcp::CallError;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A result of a kind that we do not know is an invalid answer (mcp.md §2.5), and so is a task in answer to anything
/// but a call (§9.2); an absent kind means complete.
pub(crate) fn check_result_type(method: &str, result: &RawValue) -> Result<(), CallError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind {
        #[serde(default)]
        result_type: Option<String>,
    }
    let kind = serde_json::from_str::<Kind>(result.get()).ok().and_then(|kind| kind.result_type);
    match kind.as_deref() {
        None | Some("complete" | "input_required") => Ok(()),
        Some("task") if method == "tools/call" => Ok(()),
        Some(other) => Err(CallError::Malformed(format!("the server answered with a result of type {other:.40?}"))),
    }
}
