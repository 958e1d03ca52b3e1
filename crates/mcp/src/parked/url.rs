//! Error -32042 of the legacy era: the server does nothing before a person has been somewhere (mcp.md §11, 14.3).
//!
//! The modern era has no such error: there it is a question, and the call is made anew once it is answered. Nothing is
//! parked, since nothing runs: the state is none.

use caribou_core::raw::{Members, elements, object, text};
use caribou_ports::mcp::CallError;
use serde_json::value::{RawValue, to_raw_value};

use super::abilities::{ELICIT, Need};
use super::asking::{Asking, of_no_era};
use super::book::missing;
use crate::wire::ids::Outcome;

const URL_REQUIRED: i64 = -32_042;

/// The outcome as the caller may see it: of the modern era, it is asked in place of the error.
pub(crate) fn asked_instead(outcome: Outcome, asking: &Asking) -> Outcome {
    match outcome {
        Err(CallError::Rpc { code: URL_REQUIRED, message, data }) if asking.is_modern() => {
            if !asking.can(Need::Url) {
                return Err(missing(Need::Url.required()));
            }
            let questions = data.as_deref().and_then(questions);
            // Without a place to go to it is an error like any other, whose code means nothing to this caller.
            questions.ok_or(CallError::Malformed(format!("the server wants a visit and names no place: {message}")))
        }
        other => other,
    }
}

fn questions(data: &RawValue) -> Option<Box<RawValue>> {
    let data = Members::of(data)?;
    let named = elements(data.get("elicitations")?)?;
    let method = to_raw_value(ELICIT).ok()?;
    let asked = named
        .iter()
        .filter(|params| Members::of(params).is_some_and(|params| params.get("url").and_then(text).is_some()));
    let asked: Option<Vec<(String, Box<RawValue>)>> = asked
        .enumerate()
        .map(|(place, params)| {
            let params = of_no_era(params);
            let question = object([("method", &*method), ("params", &*params)]);
            Some((format!("visit-{}", place + 1), RawValue::from_string(question).ok()?))
        })
        .collect();
    let asked = asked.filter(|asked| !asked.is_empty())?;
    let asked = object(asked.iter().map(|(key, question)| (key.as_str(), &**question)));
    RawValue::from_string(format!(r#"{{"resultType":"input_required","inputRequests":{asked}}}"#)).ok()
}

#[cfg(test)]
mod tests {
    use super::super::asking::tests::{asking, raw};
    use super::*;

    fn required(data: &str) -> Outcome {
        Err(CallError::Rpc { code: URL_REQUIRED, message: "go".to_owned(), data: Some(raw(data).into()) })
    }

    fn visitor(is_modern: bool) -> std::sync::Arc<Asking> {
        let caller = raw(&format!(r#"{{"modern":{is_modern}}}"#));
        Asking::of(&raw(r#"{"elicitation":{"url":{}}}"#), Some(&caller)).unwrap()
    }

    #[test]
    fn a_visit_that_is_required_is_a_question_of_the_modern_era_and_stays_an_error_of_the_other() {
        // mcp.md §17, B7.
        let data = r#"{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://a.test/","message":"m"}]}"#;
        let told = asked_instead(required(data), &visitor(true)).unwrap();
        let params = r#"{"mode":"url","url":"https://a.test/","message":"m"}"#;
        let question = format!(r#"{{"visit-1":{{"method":"elicitation/create","params":{params}}}}}"#);
        assert_eq!(told.get(), format!(r#"{{"resultType":"input_required","inputRequests":{question}}}"#));
        let code = |outcome: Outcome| match outcome {
            Err(CallError::Rpc { code, .. }) => code,
            other => panic!("{other:?}"),
        };
        assert_eq!(code(asked_instead(required(data), &visitor(false))), URL_REQUIRED);
        assert_eq!(code(asked_instead(required(data), &asking(true))), -32_021, "it knows forms only");
        let nowhere = asked_instead(required(r#"{"elicitations":[]}"#), &visitor(true));
        assert!(matches!(nowhere, Err(CallError::Malformed(_))));
    }
}
