//! A tool's result for people. What has no text form is named, not dumped.

use serde::Deserialize;
use serde_json::Value;

/// A `CallToolResult`, as far as people are shown it. Unknown members and content types are fine.
#[derive(Deserialize)]
pub(in crate::commands) struct ToolResult {
    #[serde(default)]
    content: Vec<Value>,
    #[serde(default, rename = "structuredContent")]
    structured: Option<Value>,
    /// Whether the tool says that it failed.
    #[serde(default, rename = "isError")]
    pub(in crate::commands) is_error: bool,
}

impl ToolResult {
    /// Its blocks one after the other; the structured content when there is no block.
    pub(in crate::commands) fn text(&self) -> String {
        match &self.structured {
            Some(structured) if self.content.is_empty() => format!("{structured:#}"),
            _ => self.content.iter().map(block).collect::<Vec<_>>().join("\n"),
        }
    }
}

fn block(block: &Value) -> String {
    let member = |name: &str| block[name].as_str().unwrap_or_default();
    match member("type") {
        "text" => member("text").to_owned(),
        "image" | "audio" => {
            let kind = member("type");
            format!("[{kind}, {}, {} characters of base64]", member("mimeType"), member("data").len())
        }
        "resource_link" => format!("[resource {}]", member("uri")),
        "resource" => match block["resource"]["text"].as_str() {
            Some(text) => text.to_owned(),
            None => format!("[resource {}]", block["resource"]["uri"].as_str().unwrap_or_default()),
        },
        _ => block.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(result: Value) -> String {
        serde_json::from_value::<ToolResult>(result).unwrap().text()
    }

    #[test]
    fn every_kind_of_content_has_a_line() {
        let content = json!({"content": [
            {"type": "text", "text": "hello"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "x:1", "text": "inside"}},
            {"type": "hologram", "n": 1},
        ]});
        let lines = "hello\n[image, image/png, 4 characters of base64]\ninside\n{\"type\":\"hologram\",\"n\":1}";
        assert_eq!(text(content), lines);
    }

    #[test]
    fn structured_content_is_shown_when_there_is_nothing_else() {
        assert_eq!(text(json!({"structuredContent": {"a": 1}})), "{\n  \"a\": 1\n}");
        assert_eq!(text(json!({"content": [{"type": "text", "text": "t"}], "structuredContent": {"a": 1}})), "t");
    }
}
