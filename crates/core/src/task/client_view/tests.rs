//! Every cell of the table, and the words around it.

use super::*;
use crate::task::Artifact;

/// An outcome in short: the result as it is written, or the code of the error.
fn short(view: &ClientView) -> Option<String> {
    view.outcome.as_ref().map(|outcome| match outcome {
        Outcome::Result(result) => result.get().to_owned(),
        Outcome::Error { code, message } => format!("{code}: {message}"),
        Outcome::Rpc(error) => error.text(),
    })
}

fn seen(snapshot: &Snapshot, is_native: bool) -> Seen<'_> {
    Seen { snapshot, is_native, version: 3, is_cancel_requested: false, answered: &[] }
}

fn with(status: Status, result: Option<&str>, error: Option<&str>) -> Snapshot {
    Snapshot { result: result.map(str::to_owned), error: error.map(str::to_owned), ..Snapshot::bare(status) }
}

fn with_rpc(error: &str) -> Snapshot {
    Snapshot { rpc_error: Some(error.to_owned()), ..with(Status::Failed, None, Some("why")) }
}

const RPC: &str = r#"{"code":-5,"message":"no","data":{"z":1.0}}"#;
const GOOD: &str = r#"{"z":1.0,"content":[]}"#;
const BAD: &str = r#"{"content":[],"isError":true}"#;

#[test]
fn each_status_of_a_task_of_the_protocol_has_its_word_and_outcome_in_both_eras() {
    // mcp.md §9.1, §9.2, statuses; §17, S26.
    use Word::{Cancelled, Completed, Failed, InputRequired, Working};
    for (snapshot, modern, legacy, outcome) in [
        (with(Status::Intended, None, None), Working, Working, None),
        (with(Status::Submitted, None, None), Working, Working, None),
        (with(Status::Working, None, None), Working, Working, None),
        (with(Status::InputRequired, None, None), InputRequired, InputRequired, None),
        (with(Status::Completed, Some(GOOD), None), Completed, Completed, Some(GOOD)),
        (with(Status::Completed, Some(BAD), None), Completed, Failed, Some(BAD)),
        (with(Status::Failed, None, Some("why")), Failed, Failed, Some("upstream_error: why")),
        (with_rpc(RPC), Failed, Failed, Some(RPC)),
        (with(Status::Cancelled, None, None), Cancelled, Cancelled, None),
        (with(Status::Unknown, None, Some("lost")), Failed, Failed, Some("outcome_unknown: lost")),
    ] {
        for (era, word) in [(Era::Modern, modern), (Era::Legacy, legacy)] {
            let view = view(era, &seen(&snapshot, true));
            assert_eq!((view.word, short(&view).as_deref()), (word, outcome), "{era} {:?}", snapshot.status);
            assert_eq!(view.word.is_terminal(), snapshot.status.is_terminal());
        }
    }
}

#[test]
fn what_a_toolset_tells_is_told_as_a_tool_tells_it() {
    // mcp.md §7: what a model could do something about is a result.
    let told = |snapshot: &Snapshot, era| {
        let view = view(era, &seen(snapshot, false));
        (view.word, short(&view).unwrap())
    };
    let failed = with(Status::Failed, None, Some("no data"));
    let text = r#"{"content":[{"type":"text","text":"no data"}],"isError":true}"#.to_owned();
    assert_eq!(told(&failed, Era::Modern), (Word::Completed, text.clone()));
    assert_eq!(told(&failed, Era::Legacy), (Word::Failed, text));
    for (result, expected) in [
        (r#"{"n":1.0}"#, r#"{"content":[{"type":"text","text":"{\"n\":1.0}"}],"structuredContent":{"n":1.0}}"#),
        ("[1]", r#"{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1]}"#),
        (r#""done\n""#, r#"{"content":[{"type":"text","text":"done\n"}]}"#),
        ("null", r#"{"content":[{"type":"text","text":"null"}]}"#),
        (
            BAD,
            r#"{"content":[{"type":"text","text":"{\"content\":[],\"isError\":true}"}],"structuredContent":{"content":[],"isError":true}}"#,
        ),
    ] {
        for era in [Era::Modern, Era::Legacy] {
            let told = told(&with(Status::Completed, Some(result), None), era);
            assert_eq!(told, (Word::Completed, expected.to_owned()), "{result}");
        }
    }
}

#[test]
fn a_result_that_lies_elsewhere_or_was_too_large_says_so() {
    let artifact = Some(Artifact { uri: "s3://b/o".to_owned(), mime_type: "text/csv".to_owned() });
    let large = Snapshot { preview: Some("{\"a".to_owned()), is_truncated: true, ..Snapshot::bare(Status::Completed) };
    let linked = Snapshot { artifact, ..Snapshot::bare(Status::Completed) };
    let told = |snapshot: &Snapshot, is_native| short(&view(Era::Modern, &seen(snapshot, is_native))).unwrap();
    let link = r#"{"content":[{"type":"resource_link","uri":"s3://b/o","name":"s3://b/o","mimeType":"text/csv"}]}"#;
    assert_eq!(told(&linked, false), link);
    for is_native in [false, true] {
        let cut = r#"{"content":[{"type":"text","text":"{\"a"}],"_meta":{"io.caribou/truncated":true}}"#;
        assert_eq!(told(&large, is_native), cut);
    }
    assert_eq!(told(&Snapshot::bare(Status::Completed), false), r#"{"content":[]}"#);
}

#[test]
fn a_legacy_client_that_cancels_sees_a_cancelled_task_for_good() {
    // mcp.md §9.1, tasks/cancel; invariant T2 holds of what is seen, too.
    for status in [Status::Working, Status::InputRequired, Status::Completed, Status::Failed, Status::Cancelled] {
        let snapshot = with(status, Some(GOOD), Some("why"));
        let seen = Seen { is_cancel_requested: true, ..seen(&snapshot, true) };
        let legacy = view(Era::Legacy, &seen);
        assert_eq!((legacy.word, short(&legacy)), (Word::Cancelled, None), "{status:?}");
        let modern = view(Era::Modern, &seen).word;
        assert_eq!(modern == Word::Cancelled, status == Status::Cancelled, "the modern era is told the truth");
    }
}

#[test]
fn only_what_is_not_answered_yet_is_asked_and_then_the_task_is_at_work() {
    // mcp.md §9.2, input keys and tasks/update.
    let asked = r#"{"message":"Which?","inputRequests":{"a":{"method":"elicitation/create","params":{"n":1.0}},"b":{"method":"roots/list"}}}"#;
    let snapshot = Snapshot { input_required: Some(asked.to_owned()), ..Snapshot::bare(Status::InputRequired) };
    let names = |answered: &[&str]| {
        let answered: Vec<String> = answered.iter().map(|name| (*name).to_owned()).collect();
        let view = view(Era::Modern, &Seen { answered: &answered, ..seen(&snapshot, true) });
        (view.word, view.questions.into_iter().map(|question| question.name).collect::<Vec<_>>(), view.message)
    };
    let message = Some("Which?".to_owned());
    assert_eq!(names(&[]), (Word::InputRequired, vec!["a".to_owned(), "b".to_owned()], message.clone()));
    assert_eq!(names(&["a"]), (Word::InputRequired, vec!["b".to_owned()], message));
    assert_eq!(names(&["b", "a", "z"]), (Word::Working, Vec::new(), None));
    let view = view(Era::Modern, &seen(&snapshot, true));
    assert_eq!(view.questions[0].request.get(), r#"{"method":"elicitation/create","params":{"n":1.0}}"#);
    assert_eq!(
        (view.questions[0].method(), view.questions[1].method()),
        ("elicitation/create".into(), "roots/list".into())
    );
}

#[test]
fn a_question_of_a_toolset_is_a_form_whose_content_is_the_answer() {
    // architecture.md §10, `input_tool`.
    let question = |asked: &str| {
        let snapshot = Snapshot { input_required: Some(asked.to_owned()), ..Snapshot::bare(Status::InputRequired) };
        view(Era::Modern, &seen(&snapshot, false)).questions.remove(0)
    };
    let form = question(r#"{"prompt":"Go on?","schema":{"type":"object","z":1.0}}"#);
    assert_eq!(form.name, "input-3");
    let params = r#"{"mode":"form","message":"Go on?","requestedSchema":{"type":"object","z":1.0}}"#;
    assert_eq!(form.request.get(), format!(r#"{{"method":"elicitation/create","params":{params}}}"#));
    assert!(question("\"Go on?\"").request.get().contains(r#""message":"Go on?","requestedSchema":{"type":"object""#));
    assert!(question(r#"{"n":1}"#).request.get().contains(r#""message":"{\"n\":1}""#));
    let body = |answer: &str| {
        let answer = RawValue::from_string(answer.to_owned()).unwrap();
        form.body(&answer).map(|body| body.get().to_owned())
    };
    assert_eq!(body(r#"{"action":"accept","content":{"n":1.0}}"#).as_deref(), Some(r#"{"n":1.0}"#));
    assert_eq!(body(r#"{"action":"accept"}"#).as_deref(), Some("{}"));
    assert_eq!((body(r#"{"action":"decline"}"#), body("7")), (None, None));
}
