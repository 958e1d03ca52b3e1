//! What a caller of ours brings along so that a server can ask it something: what it can be asked, what it answers and
//! the state that it was given (mcp.md §4).
//!
//! It rides with the call among the members for `_meta`, under the keys of `ports::mcp::relayed`. For a server of the
//! modern era it is written where that era wants it: capabilities beside those that are configured, answers and state as
//! parameters. A server of the legacy era is told none of it; there it is what a call is parked and goes on by.

use std::borrow::Cow;

use caribou_core::era::Era;
use caribou_core::raw::{Members, object, text};
use caribou_ports::mcp::relayed::{CALLER, CAPABILITIES, INPUT_RESPONSES, LOG_LEVEL, REQUEST_STATE};
use serde_json::value::RawValue;

use crate::parked::{Asker, Asking, Brought};
use crate::wire::meta::Member;

type Protocol = [(&'static str, Box<RawValue>)];

/// What is relayed with one request.
#[derive(Default)]
pub(crate) struct Relayed {
    is_legacy: bool,
    capabilities: Option<Box<RawValue>>,
    caller: Option<Box<RawValue>>,
    answers: Option<Box<RawValue>>,
    state: Option<Box<RawValue>>,
}

impl Relayed {
    /// Takes it out of the members for `_meta`.
    pub(crate) fn out_of(extra: &mut Vec<(String, Box<RawValue>)>, era: Era) -> Self {
        let mut relayed = Self { is_legacy: era == Era::Legacy, ..Self::default() };
        extra.retain_mut(|(key, value)| {
            let place = match key.as_str() {
                CAPABILITIES => &mut relayed.capabilities,
                CALLER => &mut relayed.caller,
                INPUT_RESPONSES => &mut relayed.answers,
                REQUEST_STATE => &mut relayed.state,
                key => return key != LOG_LEVEL || era == Era::Modern,
            };
            *place = Some(std::mem::take(value));
            false
        });
        relayed
    }

    /// The parameters beside those of the call.
    pub(crate) fn members<'r>(&'r self) -> impl Iterator<Item = (&'r str, Member<'r>)> {
        let answers = self.answers.as_deref().map(|answers| ("inputResponses", answers));
        let state = self.state.as_deref().map(|state| ("requestState", state));
        let members = answers.into_iter().chain(state).filter(|_| !self.is_legacy);
        members.map(|(place, value)| (place, Member::Raw(value)))
    }

    /// The fields of the protocol, with what this caller can be asked beside what is configured.
    pub(crate) fn declared<'p>(&self, protocol: &'p Protocol) -> Cow<'p, Protocol> {
        let theirs = self.capabilities.as_deref().filter(|_| !self.is_legacy).and_then(Members::of);
        let Some(theirs) = theirs else { return Cow::Borrowed(protocol) };
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

    /// What a server of the legacy era may ask in the middle of the call.
    pub(crate) fn asker(&self) -> Asker {
        let asking = self.capabilities.as_deref().filter(|_| self.is_legacy);
        let asking = asking.and_then(|capabilities| Asking::of(capabilities, self.caller.as_deref()));
        asking.map_or(Asker::Deaf, Asker::Open)
    }

    /// The state of a call that goes on, and the answers; `None` = it is a call of its own.
    pub(crate) fn brought(&mut self) -> Option<Brought> {
        let state = self.state.take_if(|_| self.is_legacy)?;
        let caller = self.caller.as_deref().and_then(Members::of);
        let principal = caller.as_ref().and_then(|caller| text(caller.get("principal")?));
        let principal = principal.unwrap_or_default().into_owned();
        Some(Brought { state, answers: self.answers.take(), principal })
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
            (CALLER, r#"{"principal":"ann","modern":true}"#),
            (INPUT_RESPONSES, r#"{"k":{"n":1.0}}"#),
            (REQUEST_STATE, "\"s\""),
        ];
        brought.map(|(key, value)| (key.to_owned(), raw(value))).into()
    }

    #[test]
    fn capabilities_are_added_and_answers_are_parameters() {
        let mut extra = brought();
        let mut relayed = Relayed::out_of(&mut extra, Era::Modern);
        assert_eq!(extra.len(), 1, "the rest stays in `_meta`");
        let protocol = [(CAPABILITIES, raw(r#"{"roots":{"listChanged":true}}"#))];
        let declared = relayed.declared(&protocol);
        assert_eq!(declared[0].1.get(), r#"{"roots":{"listChanged":true},"elicitation":{}}"#);
        let members: Vec<_> = relayed.members().map(|(name, _)| name).collect();
        assert_eq!(members, ["inputResponses", "requestState"]);
        assert!(relayed.brought().is_none() && matches!(relayed.asker(), Asker::Deaf));
    }

    #[test]
    fn a_server_of_the_legacy_era_is_told_nothing_of_it() {
        let mut extra = brought();
        let mut relayed = Relayed::out_of(&mut extra, Era::Legacy);
        assert_eq!((extra.len(), relayed.members().count()), (1, 0));
        assert!(relayed.declared(&[]).is_empty());
        assert!(matches!(relayed.asker(), Asker::Open(_)));
        let brought = relayed.brought().expect("a state");
        assert_eq!((brought.principal.as_str(), brought.state.get()), ("ann", "\"s\""));
    }
}
