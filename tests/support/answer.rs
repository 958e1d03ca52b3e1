//! One HTTP answer, kept as the text that came, so that tests can compare bytes.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// What Caribou answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type`, empty when there is none.
    pub content_type: String,
    /// The `ETag`, empty when there is none.
    pub etag: String,
    /// The body as it came.
    pub body: String,
}

impl Answer {
    /// Reads a response to its end.
    pub async fn read(response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (content_type, etag) = (header("content-type").to_owned(), header("etag").to_owned());
        let body = response.text().await.expect("the body arrives whole");
        Self { status, content_type, etag, body }
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }

    /// One top-level member, byte for byte.
    pub fn raw(&self, member: &str) -> String {
        let members: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("not a JSON object ({error}): {self:?}"));
        members.get(member).unwrap_or_else(|| panic!("no member `{member}`: {self:?}")).get().to_owned()
    }

    /// The text of the first content block of a tool's result.
    pub fn text(&self) -> String {
        let json = self.json();
        let text = json.pointer("/result/content/0/text").and_then(Value::as_str);
        text.unwrap_or_else(|| panic!("no text result: {self:?}")).to_owned()
    }

    /// The `code` of a refused request.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_else(|| panic!("no code: {self:?}")).to_owned()
    }

    /// The `detail` of a refused request.
    pub fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap_or_else(|| panic!("no detail: {self:?}")).to_owned()
    }
}
