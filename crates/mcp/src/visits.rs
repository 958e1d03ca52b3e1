//! Visits that a server of the legacy era sends its callers on: URL elicitation (mcp.md §1.3, 14.3).
//!
//! Owns which are open: a server may say of each, once, that it has ended; what it never asked for is nobody's. Bounded
//! (invariant B1): the oldest is forgotten, and its end is then told to nobody, as the protocol allows.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use caribou_core::raw::{Members, elements, text};
use caribou_ports::mcp::CallError;
use serde_json::value::RawValue;

/// Visits of one session that are open.
const MOST: usize = 64;

/// A longer name is no name.
const LONGEST: usize = 256;

const NAME: &str = "elicitationId";

/// The error that requires some.
const REQUIRED: i64 = -32_042;

/// Those of one session. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Visits(Arc<Mutex<VecDeque<String>>>);

impl Visits {
    /// The server asks for one, if these are the parameters of such a question.
    pub(crate) fn asked(&self, params: &RawValue) {
        let Some(name) = name(params) else { return };
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.contains(&name) {
            return;
        }
        if open.len() >= MOST {
            open.pop_front();
        }
        open.push_back(name);
    }

    /// The server requires some before it does anything, if it answers by that error.
    pub(crate) fn required(&self, error: &CallError) {
        let CallError::Rpc { code: REQUIRED, data: Some(data), .. } = error else { return };
        let asked = Members::of(data).and_then(|data| elements(data.get("elicitations")?));
        asked.into_iter().flatten().for_each(|params| self.asked(params));
    }

    /// The server says that one has ended: its name, if it was open.
    pub(crate) fn ended(&self, params: &RawValue) -> Option<Arc<str>> {
        let name = name(params)?;
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = open.iter().position(|open| *open == name)?;
        open.remove(at).map(Arc::from)
    }
}

fn name(params: &RawValue) -> Option<String> {
    let name = Members::of(params).and_then(|params| text(params.get(NAME)?).map(|name| name.into_owned()))?;
    Some(name).filter(|name| !name.is_empty() && name.len() <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("valid JSON")
    }

    fn named(name: &str) -> Box<RawValue> {
        raw(&format!(r#"{{"mode":"url","elicitationId":"{name}"}}"#))
    }

    #[test]
    fn what_was_asked_for_ends_once_and_nothing_else_does() {
        let visits = Visits::default();
        visits.asked(&named("a"));
        visits.asked(&raw(r#"{"message":"?"}"#));
        let data = raw(r#"{"elicitations":[{"elicitationId":"b"},{"elicitationId":7}]}"#);
        visits.required(&CallError::Rpc { code: REQUIRED, message: String::new(), data: Some(data.into()) });
        assert_eq!(visits.ended(&named("c")), None);
        for name in ["b", "a"] {
            assert_eq!(visits.ended(&named(name)).as_deref(), Some(name));
            assert_eq!(visits.ended(&named(name)), None, "once");
        }
    }

    #[test]
    fn the_oldest_is_forgotten_and_a_long_name_is_none() {
        // Invariant B1.
        let visits = Visits::default();
        (0..=MOST).for_each(|number| visits.asked(&named(&number.to_string())));
        visits.asked(&named(&"x".repeat(LONGEST + 1)));
        assert_eq!(visits.ended(&named("0")), None);
        assert_eq!(visits.ended(&named("1")).as_deref(), Some("1"));
        assert_eq!(visits.0.lock().unwrap().len(), MOST - 1);
    }
}
