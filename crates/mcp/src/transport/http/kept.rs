//! What a legacy session over HTTP is gone on with by whoever holds it next: its id, and what the server said of itself
//! when it was opened. The id is a secret, and so is the whole (O3). What cannot be read is no session.

use std::sync::Arc;

use caribou_core::config::Secret;
use caribou_core::era::{Era, LEGACY_VERSIONS};
use caribou_ports::mcp::SessionFacts;
use http::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::live::checked;
use crate::era::Greeting;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'k> {
    session: &'k str,
    version: &'k str,
    server_info: Option<&'k RawValue>,
    capabilities: Option<&'k RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    session: String,
    version: String,
    server_info: Option<Box<RawValue>>,
    capabilities: Option<Box<RawValue>>,
}

/// One that was kept.
pub(super) struct Kept {
    session: String,
    pub(super) greeting: Greeting,
}

/// Writes down the session of this id; `None` = it is not one of the legacy era.
pub(super) fn written(session: &HeaderValue, facts: &SessionFacts) -> Option<Secret> {
    let written = Written {
        session: session.to_str().ok()?,
        version: &facts.version,
        server_info: facts.server_info.as_deref(),
        capabilities: facts.capabilities.as_deref(),
    };
    let text = (facts.era == Era::Legacy).then(|| serde_json::to_string(&written).ok()).flatten()?;
    Some(Secret::new(text))
}

impl Kept {
    pub(super) fn read(kept: &Secret) -> Option<Self> {
        let Read { session, version, server_info, capabilities } = serde_json::from_str(kept.expose()).ok()?;
        let is_known = LEGACY_VERSIONS.contains(&version.as_str());
        let (server_info, capabilities) = (server_info.map(Arc::from), capabilities.map(Arc::from));
        let greeting = Greeting { era: Era::Legacy, version, server_info, capabilities };
        is_known.then_some(Self { session, greeting })
    }

    pub(super) fn session(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.session).ok().and_then(checked)
    }

    pub(super) fn version(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.greeting.version).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again_and_nothing_else_is() {
        let info: Arc<RawValue> = RawValue::from_string(r#"{"n":1.0}"#.into()).expect("JSON").into();
        let known = SessionFacts {
            era: Era::Legacy,
            version: "2025-06-18".to_owned(),
            stateful: true,
            pid: None,
            server_info: Some(info),
            capabilities: None,
        };
        let text = written(&HeaderValue::from_static("s-1"), &known).expect("written");
        let kept = Kept::read(&text).expect("read");
        assert_eq!(kept.session().expect("a session"), "s-1");
        assert_eq!(kept.greeting.server_info.expect("kept").get(), r#"{"n":1.0}"#);
        let modern = SessionFacts { era: Era::Modern, ..known };
        assert!(written(&HeaderValue::from_static("s-1"), &modern).is_none());
        for odd in [r#"{"session":"s","version":"1999-01-01"}"#, "{}", "", "null"] {
            assert!(Kept::read(&Secret::new(odd)).is_none(), "{odd}");
        }
        let odd = Kept::read(&Secret::new(r#"{"session":"a b","version":"2025-06-18"}"#)).expect("read");
        assert!(odd.session().is_none());
    }
}
