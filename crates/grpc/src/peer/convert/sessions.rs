//! Which session is meant, and what was learnt when it was opened.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::Secret;
use caribou_core::era::Era;
use caribou_core::ids::{BootId, CredentialDigest, Epoch, Scope, ServerName, SessionKey, ThreadId, UserId};
use caribou_ports::mcp::SessionFacts;
use caribou_ports::peers::Wanted;
use caribou_proto::peer::v1;
use serde_json::value::RawValue;

use super::Malformed;

/// The key of a session, as a message.
pub(super) fn key_message(key: &SessionKey) -> v1::SessionKey {
    v1::SessionKey {
        server: key.server.to_string(),
        user: key.scope.user.to_string(),
        thread: key.scope.thread.to_string(),
        credential: key.credential.map(|digest| digest.0.to_vec()).unwrap_or_default(),
    }
}

/// The key that a message names.
pub(super) fn key(key: Option<v1::SessionKey>) -> Result<SessionKey, Malformed> {
    let key = key.ok_or(Malformed("it names no session"))?;
    let credential = match &key.credential[..] {
        [] => None,
        bytes => Some(CredentialDigest(bytes.try_into().map_err(|_| Malformed("a credential has 16 bytes"))?)),
    };
    // Not by the rules of callers: the catalogue's own scope is empty.
    let scope = Scope { user: UserId::new(key.user), thread: ThreadId::new(key.thread) };
    Ok(SessionKey { server: ServerName::new(key.server), scope, credential })
}

/// Headers, as messages. Secrets.
pub(super) fn header_messages(headers: &[(String, Secret)]) -> Vec<v1::Header> {
    let header = |(name, value): &(String, Secret)| v1::Header { name: name.clone(), value: value.expose().to_owned() };
    headers.iter().map(header).collect()
}

/// The headers of a message.
pub(super) fn headers(headers: Vec<v1::Header>) -> Vec<(String, Secret)> {
    headers.into_iter().map(|header| (header.name, Secret::new(header.value))).collect()
}

/// Asks `boot` for a session.
pub(in crate::peer) fn open_request(boot: &BootId, wanted: &Wanted, within: Duration, hops: u32) -> v1::OpenRequest {
    v1::OpenRequest {
        to_boot: boot.to_string(),
        key: Some(key_message(&wanted.key)),
        headers: header_messages(&wanted.headers),
        epoch: wanted.epoch.map_or(0, |epoch| epoch.0),
        within_ms: millis(within),
        hops,
    }
}

/// The session that is asked for.
pub(in crate::peer) fn wanted(request: v1::OpenRequest) -> Result<Wanted, Malformed> {
    Ok(Wanted {
        key: key(request.key)?,
        headers: headers(request.headers),
        epoch: (request.epoch > 0).then_some(Epoch(request.epoch)),
        within: Duration::from_millis(request.within_ms),
    })
}

/// What was learnt of a session, as a message.
pub(in crate::peer) fn facts_message(facts: &SessionFacts) -> v1::Facts {
    let json = |value: &Option<Arc<RawValue>>| value.as_ref().map(|value| value.get().to_owned()).unwrap_or_default();
    let era = match facts.era {
        Era::Legacy => v1::facts::Era::Legacy,
        Era::Modern => v1::facts::Era::Modern,
    };
    v1::Facts {
        era: era.into(),
        version: facts.version.clone(),
        stateful: facts.stateful,
        pid: facts.pid.unwrap_or_default(),
        server_info: json(&facts.server_info),
        capabilities: json(&facts.capabilities),
    }
}

/// What was learnt of a session.
pub(in crate::peer) fn facts(facts: Option<v1::Facts>) -> Result<SessionFacts, Malformed> {
    let facts = facts.ok_or(Malformed("an opened session has no facts"))?;
    let era = match facts.era() {
        v1::facts::Era::Legacy => Era::Legacy,
        v1::facts::Era::Modern => Era::Modern,
        v1::facts::Era::Unspecified => return Err(Malformed("the era of a session is unknown")),
    };
    Ok(SessionFacts {
        era,
        version: facts.version,
        stateful: facts.stateful,
        pid: (facts.pid > 0).then_some(facts.pid),
        server_info: shared_json(facts.server_info)?,
        capabilities: shared_json(facts.capabilities)?,
    })
}

/// A text that must be JSON.
pub(super) fn json(text: String) -> Result<Box<RawValue>, Malformed> {
    RawValue::from_string(text).map_err(|_| Malformed("a text is not JSON"))
}

fn shared_json(text: String) -> Result<Option<Arc<RawValue>>, Malformed> {
    if text.is_empty() { Ok(None) } else { json(text).map(|json| Some(json.into())) }
}

/// Whole milliseconds; as many as there can be when there are more.
pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session_key(credential: Option<[u8; 16]>) -> SessionKey {
        SessionKey {
            server: ServerName::from("s"),
            scope: Scope::catalog(),
            credential: credential.map(CredentialDigest),
        }
    }

    #[test]
    fn a_key_means_the_same_on_the_other_side() {
        for expected in [session_key(None), session_key(Some([7; 16])), session_key(Some([0; 16]))] {
            assert_eq!(key(Some(key_message(&expected))), Ok(expected));
        }
        let odd = v1::SessionKey { credential: vec![1; 15], ..key_message(&session_key(None)) };
        assert!(key(Some(odd)).is_err() && key(None).is_err());
    }

    #[test]
    fn facts_come_over_byte_for_byte() {
        // Invariant W1.
        let odd: Arc<RawValue> = RawValue::from_string(r#"{"b":1.0,"a":9223372036854775808}"#.into()).unwrap().into();
        let known = SessionFacts {
            era: Era::Modern,
            version: "2026".to_owned(),
            stateful: true,
            pid: Some(7),
            server_info: Some(odd.clone()),
            capabilities: None,
        };
        let back = facts(Some(facts_message(&known))).unwrap();
        assert_eq!((back.era, back.version, back.stateful, back.pid), (Era::Modern, "2026".to_owned(), true, Some(7)));
        assert_eq!(back.server_info.unwrap().get(), odd.get());
        assert!(back.capabilities.is_none());
    }

    #[test]
    fn what_is_wanted_keeps_its_epoch_and_its_headers() {
        for epoch in [None, Some(Epoch(3))] {
            let headers = vec![("X-A".to_owned(), Secret::new("hunter2"))];
            let asked = Wanted { key: session_key(None), headers, epoch, within: Duration::from_secs(2) };
            let back = wanted(open_request(&BootId::from("b"), &asked, asked.within, 1)).unwrap();
            assert_eq!((back.epoch, back.within, back.headers), (epoch, asked.within, asked.headers));
        }
    }
}
