//! The answer of an input tool: whether it took what it was brought (architecture.md §10, `input_tool`).

use serde_json::value::RawValue;

use super::payload::{Misread, succeeded};

/// Reads whether the tool took the answer to a question of its task. Everything but an error says that it did; what
/// became of the task is asked afterwards.
///
/// # Errors
/// The tool failed, or its answer is no result of a tool.
pub fn input(result: &RawValue) -> Result<(), Misread> {
    succeeded(result, "input").map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_an_error_takes_the_answer() {
        let read = |result: &str| input(&RawValue::from_string(result.to_owned()).unwrap());
        for taken in [r#"{"content":[]}"#, r#"{"structuredContent":{"task_id":"r","status":"running"}}"#, "{}"] {
            assert_eq!(read(taken), Ok(()), "{taken}");
        }
        let refused = read(r#"{"isError":true,"content":[{"type":"text","text":"too late"}]}"#);
        assert_eq!(refused, Err(Misread::ToolFailed("MCP task input tool returned an error: too late".to_owned())));
        assert!(matches!(read("[]"), Err(Misread::Protocol(_))));
    }
}
