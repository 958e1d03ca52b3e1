//! The `_meta` of one request: what of it is for us (mcp.md §2.2).
//!
//! Secrets that a request brings along stand under `io.caribou/secrets`, the thread it belongs to under
//! `io.caribou/thread`. Both are ours to read and go no further; only strings count as secrets, and what is malformed
//! is passed over without an error, so that no error can speak of it (invariant O3).

use caribou_core::bounds::MAX_REQUEST_SECRETS;
use caribou_core::config::Secret;
use caribou_core::raw::{Members, object, text};
use caribou_core::task::native::announces;
use caribou_runtime::RequestSecrets;
use serde_json::value::RawValue;

use crate::fault::Fault;

pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const PROGRESS_TOKEN: &str = "progressToken";
const THREAD: &str = "io.caribou/thread";
const SECRETS: &str = "io.caribou/secrets";

/// Keys that mean something between us and whoever sent them: what progress is reported under, and what a child process
/// is told of headers.
const OURS: [&str; 2] = [PROGRESS_TOKEN, "headers"];

/// Capabilities of a client that servers ask it by.
const RELAYED: [&str; 3] = ["elicitation", "sampling", "roots"];

/// Prefixes of keys that belong to one hop alone.
const OF_A_HOP: [&str; 2] = ["io.modelcontextprotocol/", "io.caribou/"];

/// The `_meta` of a request as it came.
pub(crate) struct Meta<'a>(Option<Members<'a>>);

impl<'a> Meta<'a> {
    /// Of these parameters.
    pub(crate) fn of(params: Option<&'a RawValue>) -> Self {
        let meta = params.and_then(Members::of).and_then(|members| members.get("_meta"));
        Self(meta.and_then(Members::of))
    }

    /// One member.
    pub(crate) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.as_ref()?.get(key)
    }

    /// What a method needs of it.
    ///
    /// # Errors
    /// It holds a credential where none belongs, or a thread that is no text.
    pub(crate) fn for_method(&self) -> Result<RequestMeta, Fault> {
        if self.get("auth_token").is_some() {
            return Err(Fault::invalid_params(format!("`_meta` may not hold `auth_token`: put it into `{SECRETS}`")));
        }
        let thread = match self.get(THREAD) {
            Some(thread) => {
                Some(text(thread).ok_or_else(|| Fault::invalid_params(format!("`{THREAD}` must be a string")))?)
            }
            None => None,
        };
        Ok(RequestMeta {
            progress_token: self.get(PROGRESS_TOKEN).filter(|token| is_token(token)).map(|token| token.get().into()),
            log_level: self.get(LOG_LEVEL).and_then(|level| Level::parse(&text(level)?)),
            thread: thread.map(|thread| thread.into_owned()),
            takes_tasks: announces(self.get(CAPABILITIES)),
            secrets: self.secrets(),
            passed: self.passed(),
        })
    }

    /// What servers are told: the members that belong to no hop and, since it decides what may be asked, which
    /// questions the client can answer.
    fn passed(&self) -> Vec<(String, Box<RawValue>)> {
        let members = self.0.as_ref().map_or(&[][..], |members| &members.0);
        let is_passed = |key: &str| !OURS.contains(&key) && !OF_A_HOP.iter().any(|prefix| key.starts_with(prefix));
        let passed = members.iter().filter(|(key, _)| is_passed(key));
        let mut passed: Vec<_> = passed.map(|(key, value)| (key.clone().into_owned(), (*value).to_owned())).collect();
        passed.extend(self.get(CAPABILITIES).and_then(|declared| capabilities(declared.get())));
        passed
    }

    fn secrets(&self) -> RequestSecrets {
        let members = self.get(SECRETS).and_then(Members::of).map_or_else(Vec::new, |members| members.0);
        let strings =
            members.into_iter().filter_map(|(key, value)| Some((key.into_owned(), Secret::new(text(value)?))));
        // One too many is kept, so that whoever judges their number sees it.
        RequestSecrets(strings.take(MAX_REQUEST_SECRETS + 1).collect())
    }
}

/// What of these capabilities of a client (JSON text) servers ask it by, as a member for `_meta`; `None` = they are no
/// object.
pub(crate) fn capabilities(declared: &str) -> Option<(String, Box<RawValue>)> {
    let declared: Members<'_> = serde_json::from_str(declared).ok()?;
    let relayed = declared.0.iter().filter(|(name, _)| RELAYED.contains(&&**name));
    let relayed = relayed.map(|(name, value)| (name.as_ref(), *value));
    let relayed = RawValue::from_string(object(relayed)).ok()?;
    Some((CAPABILITIES.to_owned(), relayed))
}

/// A token is a string or a number.
fn is_token(token: &RawValue) -> bool {
    token.get().starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
}

/// What a method needs of the `_meta` of its request.
#[derive(Debug, Default)]
pub(crate) struct RequestMeta {
    /// The token that progress is wanted under: JSON text.
    pub(crate) progress_token: Option<Box<str>>,
    /// The least level of log messages that are wanted with this request.
    pub(crate) log_level: Option<Level>,
    pub(crate) thread: Option<String>,
    /// Whether the client of the modern era declares the extension of tasks with this request.
    pub(crate) takes_tasks: bool,
    pub(crate) secrets: RequestSecrets,
    /// Members for the `_meta` that servers see.
    pub(crate) passed: Vec<(String, Box<RawValue>)>,
}

/// The parameters as the next hop may see them, with these members of `_meta`.
pub(crate) fn for_the_next_hop(params: Option<&RawValue>, meta: &[(String, Box<RawValue>)]) -> Box<RawValue> {
    let members = params.and_then(Members::of).map_or_else(Vec::new, |members| members.0);
    let meta = (!meta.is_empty()).then(|| object(meta.iter().map(|(key, value)| (key.as_str(), &**value))));
    let meta = meta.and_then(|meta| RawValue::from_string(meta).ok());
    let others = members.iter().filter(|(key, _)| key != "_meta").map(|(key, value)| (key.as_ref(), *value));
    let params = object(others.chain(meta.as_deref().map(|meta| ("_meta", meta))));
    RawValue::from_string(params).unwrap_or_default()
}

/// How grave a log message is, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Level {
    /// Its word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level of this word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "debug" => Self::Debug,
            "info" => Self::Info,
            "notice" => Self::Notice,
            "warning" => Self::Warning,
            "error" => Self::Error,
            "critical" => Self::Critical,
            "alert" => Self::Alert,
            "emergency" => Self::Emergency,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn what_belongs_to_a_hop_goes_no_further_and_all_else_does() {
        // Invariant W1; mcp.md 14.2.
        let params =
            raw(r#"{"uri":"u","_meta":{"progressToken":1,"io.caribou/secrets":{"K":"hunter2"},"traceparent":"00-a",
                "io.modelcontextprotocol/logLevel":"info","x/y":9223372036854775809,"headers":{}},"z":1.0}"#);
        let next = |params: &RawValue| {
            let passed = Meta::of(Some(params)).for_method().unwrap().passed;
            for_the_next_hop(Some(params), &passed).get().to_owned()
        };
        assert_eq!(next(&params), r#"{"uri":"u","z":1.0,"_meta":{"traceparent":"00-a","x/y":9223372036854775809}}"#);
        assert_eq!(for_the_next_hop(None, &[]).get(), "{}");
        assert_eq!(next(&raw(r#"{"_meta":{"progressToken":1}}"#)), "{}");
        let capable =
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{},"extensions":{"a/b":{}}}}}"#;
        let told = r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}"#;
        assert_eq!(next(&raw(capable)), told, "only what servers ask by");
    }

    #[test]
    fn only_strings_are_secrets_and_a_credential_elsewhere_is_refused() {
        // Contract 8.5, secrets source; architecture.md §10, secrets carrier.
        let read = |text: &str| Meta::of(Some(&raw(text))).for_method();
        let meta =
            read(r#"{"_meta":{"io.caribou/secrets":{"K":"v","n":1,"l":["z"]},"io.caribou/thread":"t"}}"#).unwrap();
        assert_eq!((meta.secrets.0.len(), meta.secrets.0[0].1.expose(), meta.thread.as_deref()), (1, "v", Some("t")));
        assert!(read(r#"{"_meta":{"io.caribou/secrets":["hunter2"]}}"#).unwrap().secrets.0.is_empty());
        let refused = read(r#"{"_meta":{"auth_token":"hunter2"}}"#).unwrap_err();
        assert!(!refused.message.contains("hunter2"));
    }

    #[test]
    fn levels_are_ordered_and_tokens_are_texts_or_numbers() {
        assert!(Level::parse("debug") < Level::parse("emergency") && Level::parse("loud").is_none());
        let token = |text: &str| Meta::of(Some(&raw(text))).for_method().unwrap().progress_token;
        assert_eq!(token(r#"{"_meta":{"progressToken":"a"}}"#).as_deref(), Some("\"a\""));
        assert_eq!(token(r#"{"_meta":{"progressToken":7}}"#).as_deref(), Some("7"));
        assert_eq!(token(r#"{"_meta":{"progressToken":null}}"#), None);
    }
}
