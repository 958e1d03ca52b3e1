//! What comes back from the owner: progress, and the answer.

use std::sync::Arc;

use caribou_ports::mcp::{Progress, TaskQuestion, ToolListing};
use caribou_ports::peers::PeerAnswer;
use caribou_proto::peer::v1;
use caribou_proto::peer::v1::done::Answer;
use caribou_proto::peer::v1::down::What;
use serde_json::value::RawValue;

use super::Malformed;
use super::sessions::json;

/// A report, as a message.
pub(in crate::peer) fn report(progress: &Progress) -> v1::Down {
    let what = match progress {
        Progress::Progress(params) => What::Progress(params.get().to_owned()),
        Progress::Message(params) => What::Message(params.get().to_owned()),
    };
    v1::Down { what: Some(what) }
}

/// The report that a message holds; `None` = it is none.
pub(in crate::peer) fn progress(what: What) -> Result<Option<Progress>, Malformed> {
    Ok(Some(match what {
        What::Progress(params) => Progress::Progress(json(params)?.into()),
        What::Message(params) => Progress::Message(json(params)?.into()),
        What::Part(_) | What::End(_) => return Ok(None),
    }))
}

/// An answer that is sent as one message.
pub(in crate::peer) fn done(answer: PeerAnswer) -> v1::Done {
    let text = |json: Arc<RawValue>| json.get().to_owned();
    let answer = match answer {
        PeerAnswer::Result(result) => Answer::Result(text(result)),
        PeerAnswer::Tools(listing) => {
            let tools = listing.tools.into_iter().map(text).collect();
            Answer::Tools(v1::Tools { tools, warnings: listing.warnings })
        }
        PeerAnswer::Questions(questions) => {
            let question = |question: TaskQuestion| {
                let params = question.params.get().to_owned();
                v1::Question { name: question.name, method: question.method, params }
            };
            Answer::Questions(v1::Questions { questions: questions.into_iter().map(question).collect() })
        }
        PeerAnswer::Answered(found) => Answer::Answered(found),
    };
    v1::Done { answer: Some(answer), ..Default::default() }
}

/// The answer of a message; `parted` is a result that came in parts before it.
pub(in crate::peer) fn answer(done: v1::Done, parted: Option<String>) -> Result<PeerAnswer, Malformed> {
    if let Some(result) = parted {
        return Ok(PeerAnswer::Result(json(result)?.into()));
    }
    let shared = |text: String| json(text).map(Arc::from);
    Ok(match done.answer.ok_or(Malformed("an answer is empty"))? {
        Answer::Result(result) => PeerAnswer::Result(shared(result)?),
        Answer::Tools(v1::Tools { tools, warnings }) => {
            let tools = tools.into_iter().map(shared).collect::<Result<_, _>>()?;
            PeerAnswer::Tools(ToolListing { tools, warnings })
        }
        Answer::Questions(v1::Questions { questions }) => {
            let question = |question: v1::Question| {
                let params = json(question.params)?;
                Ok(TaskQuestion { name: question.name, method: question.method, params })
            };
            PeerAnswer::Questions(questions.into_iter().map(question).collect::<Result<_, _>>()?)
        }
        Answer::Answered(found) => PeerAnswer::Answered(found),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn over(sent: PeerAnswer) -> PeerAnswer {
        answer(done(sent), None).unwrap()
    }

    #[test]
    fn every_answer_comes_over_byte_for_byte() {
        // Invariant W1.
        let odd = r#"{"z":1.0,"content":[],"b":9223372036854775808,"z":2}"#;
        let PeerAnswer::Result(back) = over(PeerAnswer::Result(raw(odd).into())) else { panic!("a result") };
        assert_eq!(back.get(), odd);
        let listing = ToolListing { tools: vec![raw(odd).into()], warnings: vec!["w".to_owned()] };
        let PeerAnswer::Tools(back) = over(PeerAnswer::Tools(listing)) else { panic!("tools") };
        assert_eq!((back.tools[0].get(), &back.warnings[..]), (odd, &["w".to_owned()][..]));
        let question = TaskQuestion { name: "n".to_owned(), method: "elicitation/create".to_owned(), params: raw(odd) };
        let PeerAnswer::Questions(back) = over(PeerAnswer::Questions(vec![question])) else { panic!("questions") };
        assert_eq!((&*back[0].name, &*back[0].method, back[0].params.get()), ("n", "elicitation/create", odd));
        assert!(matches!(over(PeerAnswer::Answered(true)), PeerAnswer::Answered(true)));
        assert!(matches!(over(PeerAnswer::Answered(false)), PeerAnswer::Answered(false)));
    }

    #[test]
    fn reports_keep_their_kind_and_text() {
        let params: Arc<RawValue> = raw(r#"{"progress":1.50}"#).into();
        for sent in [Progress::Progress(params.clone()), Progress::Message(params.clone())] {
            let back = progress(report(&sent).what.unwrap()).unwrap().unwrap();
            assert_eq!(format!("{back:?}"), format!("{sent:?}"));
        }
        assert!(progress(What::Part(vec![1])).unwrap().is_none());
    }

    #[test]
    fn an_answer_that_is_none_is_refused() {
        assert!(answer(v1::Done::default(), None).is_err());
        let odd = v1::Done { answer: Some(Answer::Result("{".to_owned())), ..Default::default() };
        assert!(answer(odd, None).is_err());
    }
}
