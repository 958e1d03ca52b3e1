//! What a caller of ours brings along for the server itself: what it can be asked, and what it answers (mcp.md §4).
//!
//! It rides with the call among the members for `_meta`, under the keys of `ports::mcp::relayed`, and is written where
//! the modern era wants it: capabilities beside those that are configured, answers and state as parameters. A server of
//! the legacy era asks by requests of its own; to it nothing of this is said.

use std::borrow::Cow;

use caribou_core::era::Era;
use caribou_core::raw::{Members, object};
use caribou_ports::mcp::relayed::{CAPABILITIES, INPUT_RESPONSES, LOG_LEVEL, REQUEST_STATE};
use serde_json::value::RawValue;

use crate::wire::meta::Member;

type Protocol = [(&'static str, Box<RawValue>)];

/// What is relayed with one request.
#[derive(Default)]
pub(crate) struct Relayed {
    capabilities: Option<Box<RawValue>>,
    answers: Vec<(&'static str, Box<RawValue>)>,
}

impl Relayed {
    /// Takes it out of the members for `_meta`.
    pub(crate) fn out_of(extra: &mut Vec<(String, Box<RawValue>)>, era: Era) -> Self {
        let mut relayed = Self::default();
        let place = |key: &str| match key {
            INPUT_RESPONSES => Some("inputResponses"),
            REQUEST_STATE => Some("requestState"),
            _ => None,
        };
        extra.retain_mut(|(key, value)| {
            if key == CAPABILITIES {
                relayed.capabilities = Some(std::mem::take(value));
            } else if let Some(place) = place(key) {
                relayed.answers.push((place, std::mem::take(value)));
            } else {
                return key != LOG_LEVEL || era == Era::Modern;
            }
            false
        });
        match era {
            Era::Modern => relayed,
            Era::Legacy => Self::default(),
        }
    }

    /// The parameters beside those of the call.
    pub(crate) fn members<'r>(&'r self) -> impl Iterator<Item = (&'r str, Member<'r>)> {
        self.answers.iter().map(|(place, value)| (*place, Member::Raw(value)))
    }

    /// The fields of the protocol, with what this caller can be asked beside what is configured.
    pub(crate) fn declared<'p>(&self, protocol: &'p Protocol) -> Cow<'p, Protocol> {
        let Some(theirs) = self.capabilities.as_deref().and_then(Members::of) else { return Cow::Borrowed(protocol) };
        let mut fields = protocol.to_vec();
        if let Some((_, ours)) = fields.iter_mut().find(|(key, _)| *key == CAPABILITIES) {
            let configured = Members::of(ours).map_or_else(Vec::new, |ours| ours.0);
            let added = theirs.0.iter().filter(|(name, _)| configured.iter().all(|(held, _)| held != name));
            let all = configured.iter().chain(added).map(|(name, value)| (name.as_ref(), *value));
            if let Ok(all) = RawValue::from_string(object(all)) {
                *ours = all;
            }
        }
        Cow::Owned(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("valid JSON")
    }

    fn brought() -> Vec<(String, Box<RawValue>)> {
        let brought = [
            ("traceparent", "\"00-a\""),
            (CAPABILITIES, r#"{"elicitation":{},"roots":{}}"#),
            (INPUT_RESPONSES, r#"{"k":{"n":1.0}}"#),
            (REQUEST_STATE, "\"s\""),
        ];
        brought.map(|(key, value)| (key.to_owned(), raw(value))).into()
    }

    #[test]
    fn capabilities_are_added_and_answers_are_parameters() {
        let mut extra = brought();
        let relayed = Relayed::out_of(&mut extra, Era::Modern);
        assert_eq!(extra.len(), 1, "the rest stays in `_meta`");
        let protocol = [(CAPABILITIES, raw(r#"{"roots":{"listChanged":true}}"#))];
        let declared = relayed.declared(&protocol);
        assert_eq!(declared[0].1.get(), r#"{"roots":{"listChanged":true},"elicitation":{}}"#);
        let members: Vec<_> = relayed.members().map(|(name, _)| name).collect();
        assert_eq!(members, ["inputResponses", "requestState"]);
    }

    #[test]
    fn a_server_of_the_legacy_era_is_told_nothing_of_it() {
        let mut extra = brought();
        let relayed = Relayed::out_of(&mut extra, Era::Legacy);
        assert_eq!((extra.len(), relayed.members().count()), (1, 0));
        assert!(relayed.declared(&[]).is_empty());
    }
}
