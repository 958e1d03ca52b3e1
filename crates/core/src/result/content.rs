//! The agent-shaped form of a `CallToolResult`: content blocks, an artifact, and the message of a tool that failed
//! (contract 4.7).
//!
//! Made from the raw result and never instead of it (invariant W1). Reads only what it needs, one level at a time; a
//! block it does not know becomes text that holds the block's own JSON, so nothing vanishes and nothing fails.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::{Deserializer as _, Error, Visitor};
use serde_json::value::RawValue;

use super::neutralise::neutralise;
use super::references::References;
use crate::raw::{self, Members};

/// A result as an agent reads it.
#[derive(Clone, Debug, Default)]
pub struct AgentResult {
    /// The content blocks, in the server's order.
    pub content: Vec<Block>,
    /// What the result holds beside its content; `None` when there is nothing.
    pub artifact: Option<Artifact>,
    /// Whether the tool failed (`isError`).
    pub is_error: bool,
}

/// What a result holds for programs.
#[derive(Clone, Debug, Serialize)]
pub struct Artifact {
    /// `structuredContent`, byte for byte.
    pub structured_content: Box<RawValue>,
}

/// One content block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Block {
    /// Text, of the result itself or of an embedded resource.
    Text {
        /// The text.
        text: String,
    },
    /// A block of a kind that has no form here: its JSON, as text.
    #[serde(rename = "text")]
    Other {
        /// The block as the server wrote it.
        text: String,
    },
    /// An image.
    Image(Payload),
    /// Any other file.
    File(Payload),
}

/// The bytes of an image or file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Payload {
    /// Where they are.
    #[serde(flatten)]
    pub source: Source,
    /// What they are, if the server said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// Where bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Here, as the server encoded them.
    Base64(String),
    /// To be read from there.
    Url(String),
}

impl AgentResult {
    /// The agent-shaped form of `result`.
    pub fn of(result: &RawValue) -> Self {
        let Some(members) = Members::of(result) else {
            return Self { content: vec![other(result)], ..Self::default() };
        };
        let blocks = members.get("content").and_then(raw::elements).unwrap_or_default();
        let structured = members.get("structuredContent").filter(|content| content.get() != "null");
        Self {
            content: blocks.into_iter().map(Block::of).collect(),
            artifact: structured.map(|content| Artifact { structured_content: content.to_owned() }),
            is_error: members.get("isError").is_some_and(|flag| flag.get() == "true"),
        }
    }

    /// Whether there is text that could name a file.
    pub fn has_text(&self) -> bool {
        self.content.iter().any(|block| matches!(block, Block::Text { .. }))
    }

    /// Writes references to files of the thread as paths of the agent's own tree.
    pub fn translate(&mut self, references: &mut References<'_>) {
        for block in &mut self.content {
            match block {
                Block::Text { text } => {
                    if let Some(translated) = references.in_text(text) {
                        *text = translated;
                    }
                }
                Block::Image(Payload { source: Source::Url(url), .. })
                | Block::File(Payload { source: Source::Url(url), .. }) => {
                    if let Some(path) = references.of_link(url) {
                        *url = path;
                    }
                }
                Block::Other { .. } | Block::Image(_) | Block::File(_) => {}
            }
        }
    }

    /// With the power taken out of text that imitates the framework. Images, files and the artifact stay as they are.
    #[must_use]
    pub fn neutralised(mut self) -> Self {
        for block in &mut self.content {
            if let Block::Text { text } | Block::Other { text } = block
                && let Cow::Owned(harmless) = neutralise(text)
            {
                *text = harmless;
            }
        }
        self
    }

    /// The message of a tool that failed: its texts, a line each, or the whole content when it has none. `None` for a
    /// tool that did not fail.
    pub fn error(&self) -> Option<String> {
        if !self.is_error {
            return None;
        }
        let texts: Vec<&str> = self.content.iter().filter_map(Block::text).collect();
        // Blocks are strings all through: writing them does not fail.
        Some(if texts.is_empty() { serde_json::to_string(&self.content).unwrap_or_default() } else { texts.join("\n") })
    }
}

impl Block {
    fn of(block: &RawValue) -> Self {
        Self::known(block).unwrap_or_else(|| other(block))
    }

    fn known(block: &RawValue) -> Option<Self> {
        let members = Members::of(block)?;
        let member = |name: &str| members.get(name).and_then(string);
        match member("type")?.as_str() {
            "text" => member("text").map(|text| Self::Text { text }),
            "image" => {
                Some(Self::Image(Payload { source: Source::Base64(member("data")?), mime_type: mime(&members) }))
            }
            "resource_link" => Some(Self::file(Source::Url(member("uri")?), mime(&members))),
            "resource" => Self::embedded(members.get("resource")?),
            _ => None,
        }
    }

    fn embedded(resource: &RawValue) -> Option<Self> {
        let members = Members::of(resource)?;
        let member = |name: &str| members.get(name).and_then(string);
        match member("text") {
            Some(text) => Some(Self::Text { text }),
            None => Some(Self::file(Source::Base64(member("blob")?), mime(&members))),
        }
    }

    /// An image or another file, by its type.
    fn file(source: Source, mime_type: Option<String>) -> Self {
        let is_image = mime_type.as_ref().is_some_and(|mime| mime.starts_with("image/"));
        let payload = Payload { source, mime_type };
        if is_image { Self::Image(payload) } else { Self::File(payload) }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text } | Self::Other { text } => Some(text),
            Self::Image(_) | Self::File(_) => None,
        }
    }
}

fn mime(members: &Members<'_>) -> Option<String> {
    members.get("mimeType").and_then(string).filter(|mime| !mime.is_empty())
}

fn other(block: &RawValue) -> Block {
    Block::Other { text: block.get().to_owned() }
}

/// The string that `raw` is. Half a surrogate pair, which JSON can write and Unicode cannot, becomes U+FFFD.
fn string(raw: &RawValue) -> Option<String> {
    struct Lossy;

    impl<'de> Visitor<'de> for Lossy {
        type Value = String;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a string")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }

    match raw::text(raw) {
        Some(text) => Some(text.into_owned()),
        None => serde_json::Deserializer::from_str(raw.get()).deserialize_bytes(Lossy).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn form(result: &str) -> AgentResult {
        AgentResult::of(&RawValue::from_string(result.to_owned()).unwrap())
    }

    fn content(blocks: &str) -> Value {
        serde_json::to_value(form(&format!(r#"{{"content":[{blocks}]}}"#)).content).unwrap()
    }

    #[test]
    fn each_kind_of_block_has_its_form() {
        // Contract 4.7.
        for (block, expected) in [
            (r#"{"type":"text","text":"a\n\u00e9"}"#, json!({"type": "text", "text": "a\né"})),
            (
                r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#,
                json!({"type": "image", "base64": "AA==", "mime_type": "image/png"}),
            ),
            (
                r#"{"type":"resource_link","uri":"http://h/a.png","mimeType":"image/png","name":"a"}"#,
                json!({"type": "image", "url": "http://h/a.png", "mime_type": "image/png"}),
            ),
            (
                r#"{"type":"resource_link","uri":"file:///a.pdf","mimeType":"application/pdf"}"#,
                json!({"type": "file", "url": "file:///a.pdf", "mime_type": "application/pdf"}),
            ),
            (r#"{"type":"resource_link","uri":"x:y","mimeType":""}"#, json!({"type": "file", "url": "x:y"})),
            (
                r#"{"type":"resource","resource":{"uri":"file:///r","mimeType":"text/plain","text":"r"}}"#,
                json!({"type": "text", "text": "r"}),
            ),
            (
                r#"{"type":"resource","resource":{"uri":"file:///r","mimeType":"image/gif","blob":"AA=="}}"#,
                json!({"type": "image", "base64": "AA==", "mime_type": "image/gif"}),
            ),
            (
                r#"{"type":"resource","resource":{"uri":"file:///r","blob":"AA=="}}"#,
                json!({"type": "file", "base64": "AA=="}),
            ),
        ] {
            assert_eq!(content(block), json!([expected]), "{block}");
        }
    }

    #[test]
    fn what_is_not_known_becomes_text_that_holds_its_json() {
        // Contract 4.7.
        for block in [
            r#"{"type":"audio","data":"AAA=","mimeType":"audio/wav"}"#,
            r#"{"type":"hologram", "payload":{"layers":[1.0,null]}}"#,
            r#"{"no_type":true}"#,
            r#"{"type":"text"}"#,
            r#"{"type":"image","data":7}"#,
            r#"{"type":"resource","resource":{"uri":"x:y"}}"#,
            r#""bare""#,
            "null",
        ] {
            assert_eq!(content(block), json!([{"type": "text", "text": block}]));
        }
        assert_eq!(content(r#"{"type":"text","text":"\ud83d lone"}"#)[0]["text"], "\u{fffd}\u{fffd}\u{fffd} lone");
    }

    #[test]
    fn a_result_without_the_usual_members_still_has_a_form() {
        assert_eq!(form("[1]").content, [Block::Other { text: "[1]".into() }]);
        for empty in ["{}", r#"{"content":null}"#, r#"{"content":[]}"#] {
            let form = form(empty);
            assert!(form.content.is_empty() && form.artifact.is_none() && !form.is_error, "{empty}");
        }
    }

    #[test]
    fn structured_content_becomes_the_artifact_byte_for_byte() {
        // Contract 4.7.
        let artifact = form(r#"{"content":[],"structuredContent":{"b":1.0,"a":9223372036854775808}}"#).artifact;
        let written = serde_json::to_string(&artifact).unwrap();
        assert_eq!(written, r#"{"structured_content":{"b":1.0,"a":9223372036854775808}}"#);
        assert!(form(r#"{"structuredContent":null}"#).artifact.is_none());
    }

    #[test]
    fn a_failed_tool_says_its_texts_or_its_whole_content() {
        // Contract 4.7.
        let texts = r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"AA=="},{"type":"text","text":"b"}],"isError":true}"#;
        assert_eq!(form(texts).error().as_deref(), Some("a\nb"));
        let image = r#"{"content":[{"type":"image","data":"AA=="}],"isError":true}"#;
        assert_eq!(form(image).error().as_deref(), Some(r#"[{"type":"image","base64":"AA=="}]"#));
        for fine in [r#"{"isError":false}"#, "{}", r#"{"isError":"true"}"#] {
            assert_eq!(form(fine).error(), None);
        }
    }

    #[test]
    fn only_text_can_name_files() {
        // Contract 4.7.
        let has_text = |blocks: &str| form(&format!(r#"{{"content":[{blocks}]}}"#)).has_text();
        assert!(has_text(r#"{"type":"text","text":""}"#));
        assert!(has_text(r#"{"type":"resource","resource":{"uri":"x:y","text":"r"}}"#));
        assert!(!has_text(r#"{"type":"image","data":"AA=="},{"type":"hologram"}"#));
        assert!(!has_text(""));
    }

    #[test]
    fn neutralising_leaves_images_and_the_artifact() {
        // Contract 4.7.
        let form = form(
            r#"{"content":[{"type":"text","text":"<system>"},{"type":"x","v":"<system>"},{"type":"image","data":"<system>"}],"structuredContent":{"a":"<system>"}}"#,
        )
        .neutralised();
        let written = serde_json::to_value(&form.content).unwrap();
        assert_eq!(written[0]["text"], "&lt;system&gt;");
        assert_eq!(written[1]["text"], r#"{"type":"x","v":"&lt;system&gt;"}"#);
        assert_eq!(written[2]["base64"], "<system>");
        assert_eq!(form.artifact.unwrap().structured_content.get(), r#"{"a":"<system>"}"#);
    }
}
