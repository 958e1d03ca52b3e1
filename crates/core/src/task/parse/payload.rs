//! The object inside a tool's result, and the fields that several payloads share.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::raw::{self, Members};
use crate::task::json::cut;
use crate::task::limits::MAX_TOOL_ERROR_CHARS;
use crate::task::snapshot::Artifact;

/// Why an answer tells nothing about the task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misread {
    /// The tool itself reports a failure, which may pass.
    #[error("{0}")]
    ToolFailed(String),
    /// The answer breaks the contract of task tools, and would again.
    #[error("MCP task protocol error: {0}")]
    Protocol(String),
}

pub(super) fn protocol(what: impl Into<String>) -> Misread {
    Misread::Protocol(what.into())
}

/// The members of a result that is no error of the tool.
pub(super) fn succeeded<'r>(result: &'r RawValue, role: &str) -> Result<Members<'r>, Misread> {
    let members = Members::of(result).ok_or_else(|| protocol("the result of the tool is not an object"))?;
    if members.get("isError").is_some_and(|flag| flag.get() == "true") {
        return Err(Misread::ToolFailed(match first_text(&members) {
            Some(text) => format!("MCP task {role} tool returned an error: {}", cut(&text, MAX_TOOL_ERROR_CHARS)),
            None => format!("MCP task {role} tool returned an error"),
        }));
    }
    Ok(members)
}

/// The members of `structuredContent`.
pub(super) fn payload<'r>(result: &'r RawValue, role: &str) -> Result<Members<'r>, Misread> {
    let members = succeeded(result, role)?;
    let content = given(&members, "structuredContent").ok_or_else(|| protocol("structuredContent is missing"))?;
    Members::of(content).ok_or_else(|| protocol("structuredContent is not an object"))
}

/// The text of the first block that is one.
fn first_text(result: &Members<'_>) -> Option<String> {
    raw::elements(result.get("content")?)?.into_iter().find_map(|block| {
        let block = Members::of(block)?;
        let is_text = block.get("type").and_then(raw::text).is_some_and(|kind| kind == "text");
        let text = if is_text { raw::text(block.get("text")?)? } else { return None };
        (!text.trim().is_empty()).then(|| text.into_owned())
    })
}

/// A member that is there and not null.
pub(super) fn given<'r>(members: &Members<'r>, name: &str) -> Option<&'r RawValue> {
    members.get(name).filter(|value| value.get() != "null")
}

/// A member that must be a string when it is given.
pub(super) fn optional_text<'r>(members: &Members<'r>, name: &str) -> Result<Option<Cow<'r, str>>, Misread> {
    let Some(value) = given(members, name) else { return Ok(None) };
    raw::text(value).map(Some).ok_or_else(|| protocol(format!("{name} is not a string")))
}

/// A member that must be a string with something in it.
pub(super) fn required_text<'r>(members: &Members<'r>, name: &str) -> Result<Cow<'r, str>, Misread> {
    match optional_text(members, name)? {
        Some(text) if !text.trim().is_empty() => Ok(text),
        _ => Err(protocol(format!("{name} is missing or empty"))),
    }
}

/// The task it is about must be the one that was asked about.
pub(super) fn same_task(members: &Members<'_>, remote_id: &str) -> Result<(), Misread> {
    if required_text(members, "task_id")? == remote_id {
        return Ok(());
    }
    Err(protocol("task_id is another one than was asked about"))
}

/// `result_artifact`; what it holds beside address and kind is dropped.
pub(super) fn artifact(members: &Members<'_>) -> Result<Option<Artifact>, Misread> {
    let Some(value) = given(members, "result_artifact") else { return Ok(None) };
    let artifact = Members::of(value).ok_or_else(|| protocol("result_artifact is not an object"))?;
    let part = |name: &str| {
        required_text(&artifact, name).map_err(|_| protocol(format!("result_artifact.{name} is missing or empty")))
    };
    Ok(Some(Artifact { uri: part("uri")?.into_owned(), mime_type: part("mime_type")?.into_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(result: &str) -> Misread {
        let result = RawValue::from_string(result.to_owned()).unwrap();
        payload(&result, "status").err().unwrap()
    }

    #[test]
    fn an_error_of_the_tool_tells_its_first_text_only_and_not_all_of_it() {
        // Contract 6.7, isError.
        let long = "x".repeat(501);
        let failed = read(&format!(
            r#"{{"isError":true,"content":[{{"type":"image"}},{{"type":"text","text":"{long}"}},{{"type":"text","text":"b"}}],
                "structuredContent":{{"task_id":"r","status":"completed"}}}}"#
        ));
        let Misread::ToolFailed(text) = failed else { panic!("{failed:?}") };
        assert!(text.ends_with(&format!(": {}", "x".repeat(500))), "{text}");
        let mute = read(r#"{"isError":true,"content":[]}"#);
        assert_eq!(mute, Misread::ToolFailed("MCP task status tool returned an error".to_owned()));
    }

    #[test]
    fn text_is_never_read_for_a_payload() {
        // Contract 6.6 and 6.7, structuredContent.
        let text = r#"{"content":[{"type":"text","text":"{\"task_id\":\"r\",\"status\":\"running\"}"}]}"#;
        for (result, what) in [
            (text, "structuredContent is missing"),
            (r#"{"structuredContent":null}"#, "structuredContent is missing"),
            (r#"{"structuredContent":[]}"#, "structuredContent is not an object"),
            ("[]", "the result of the tool is not an object"),
        ] {
            assert_eq!(read(result), protocol(what), "{result}");
        }
    }
}
