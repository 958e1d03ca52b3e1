//! Settings of who is told about durable tasks. URLs may hold a login and secrets sign: they are checked when they are
//! read, and never printed (invariant O3).

use std::borrow::Cow;
use std::fmt;

use caribou_core::config::Secret;
use caribou_core::masker::MASK;
use caribou_notify::{LookUpUrl, WebhookOptions, WebhookSecret, WebhookUrl};
use garde::Validate;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Who is told when a task asks for attention, is hard to follow, or has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Notify {
    /// A program of yours, over HTTP.
    #[garde(dive)]
    pub webhook: WebhookSettings,
    /// Whoever watches over gRPC (`TaskService.Watch`) and acknowledges each event. Events wait in the database while
    /// nobody does, so switch it on only where somebody will.
    #[garde(skip)]
    pub stream: bool,
    /// One line of the log for each event, without what servers said.
    #[garde(skip)]
    pub log: bool,
}

/// A program of yours that is told over HTTP, signed as Standard Webhooks says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct WebhookSettings {
    /// Where events are sent with POST; http or https. When absent: nowhere. It may hold a login, which is never
    /// printed.
    #[garde(skip)]
    pub url: Option<Hidden<WebhookUrl>>,
    /// Secrets that sign, `whsec_` and base64. Each signs every request, so that a new one can be added before the old
    /// one goes. Without any, nothing is signed. As one environment variable: separated by commas.
    #[garde(length(max = 8))]
    pub secrets: Vec<Hidden<WebhookSecret>>,
    /// Where the state of a run is asked for, once the answer to an event was 202 and named a run: a URL with `{run_id}`
    /// in it, and `{thread_id}` and `{user_id}` if it needs them. When absent, such an event counts as delivered.
    #[garde(skip)]
    pub look_up_url: Option<Hidden<LookUpUrl>>,
}

impl WebhookSettings {
    /// What the webhook is made of; `None` = there is none.
    pub fn options(&self) -> Option<WebhookOptions> {
        let url = self.url.clone()?.0;
        let secrets = self.secrets.iter().map(|secret| secret.0.clone()).collect();
        Some(WebhookOptions { url, secrets, look_up: self.look_up_url.clone().map(|url| url.0) })
    }
}

/// A text that is checked when it is read, and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden<T>(T);

impl<T> Hidden<T> {
    /// What was read.
    pub fn value(&self) -> &T {
        &self.0
    }
}

/// What can be read from a hidden text; its error repeats nothing of it.
pub trait Readable: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// What it should have been.
    fn read(text: Secret) -> Result<Self, String>;
}

impl Readable for WebhookUrl {
    fn read(text: Secret) -> Result<Self, String> {
        Self::parse(text).map_err(|error| error.to_string())
    }
}

impl Readable for WebhookSecret {
    fn read(text: Secret) -> Result<Self, String> {
        Self::parse(&text).map_err(|error| error.to_string())
    }
}

impl Readable for LookUpUrl {
    fn read(text: Secret) -> Result<Self, String> {
        Self::parse(text).map_err(|error| error.to_string())
    }
}

impl<'de, T: Readable> Deserialize<'de> for Hidden<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Secret::new(String::deserialize(deserializer)?);
        T::read(text).map(Self).map_err(serde::de::Error::custom)
    }
}

impl<T> Serialize for Hidden<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

impl<T> fmt::Debug for Hidden<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl<T> JsonSchema for Hidden<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Hidden".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_urls_and_secrets_is_printed_or_written() {
        // Invariant O3.
        let text = r#"{"webhook":{"url":"http://ann:hunter2@agent/","secrets":["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
            "look_up_url":"http://ann:hunter2@agent/{run_id}"}}"#;
        let notify: Notify = serde_json::from_str(text).unwrap();
        let shown = format!("{notify:?} {} {:?}", serde_json::to_string(&notify).unwrap(), notify.webhook.options());
        assert!(!shown.contains("hunter2") && !shown.contains("MfKQ"), "{shown}");
        assert!(notify.webhook.options().is_some() && Notify::default().webhook.options().is_none());
        for wrong in
            [r#"{"url":"ftp://hunter2"}"#, r#"{"secrets":["hunter2"]}"#, r#"{"look_up_url":"http://hunter2/"}"#]
        {
            let error = serde_json::from_str::<WebhookSettings>(wrong).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
