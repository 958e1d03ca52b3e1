//! Questions of the two protocols, and what becomes of answers.

use caribou_core::failure::Class;
use caribou_core::task::{Status, TaskLimits};
use caribou_ports::mcp::TaskQuestion;
use caribou_ports::store::NewAnswer;
use caribou_ports::task_driver::TaskDriver;
use serde_json::value::RawValue;

use super::upstream::{Script, handle, result};
use crate::tasks::{LegacyTasks, ModernTasks};

const PARAMS: &str = r#"{"message":"Which?","requestedSchema":{"type":"object","required":["n"]}}"#;

fn answer(name: &str) -> NewAnswer {
    NewAnswer { input_id: name.to_owned(), body: r#"{"action":"accept","content":{"n":1.0}}"#.to_owned() }
}

#[tokio::test]
async fn a_legacy_server_asks_by_a_request_and_its_answer_answers_it() {
    // mcp.md §9.1, input.
    let driver = LegacyTasks::new(TaskLimits::default());
    let asked = TaskQuestion {
        name: "q-1".to_owned(),
        method: "elicitation/create".to_owned(),
        params: RawValue::from_string(PARAMS.to_owned()).unwrap(),
    };
    let waits = r#"{"taskId":"r","status":"input_required","statusMessage":"needs help"}"#;
    let script = Script::new([result(waits)]).asking(vec![asked]);
    let report = driver.status(&script, handle()).await.unwrap();
    assert_eq!(report.status, Status::InputRequired);
    let shown: serde_json::Value = serde_json::from_str(report.input_required.unwrap().get()).unwrap();
    assert_eq!((&shown["kind"], &shown["message"]), (&"elicitation".into(), &"Which?".into()));
    assert_eq!(shown["inputRequests"]["q-1"]["params"]["requestedSchema"], shown["requestedSchema"]);

    driver.answer(&script, handle(), &[answer("q-1"), answer("q-0")]).await.expect("one of them is asked");
    let late = driver.answer(&script, handle(), &[answer("q-0")]).await.unwrap_err();
    assert_eq!(late.class(), Class::NotFound, "{late}");
    let brought = |name: &str| format!("answer of r {name} {}", answer(name).body);
    assert_eq!(script.seen()[1..], ["questions of r".to_owned(), brought("q-1"), brought("q-0"), brought("q-0")]);
}

#[tokio::test]
async fn a_legacy_server_that_has_not_asked_yet_is_shown_with_what_it_says() {
    let driver = LegacyTasks::new(TaskLimits::default());
    let script = Script::new([result(r#"{"taskId":"r","status":"input_required","statusMessage":"needs help"}"#)]);
    let report = driver.status(&script, handle()).await.unwrap();
    assert_eq!(report.input_required.unwrap().get(), r#"{"kind":"unknown","message":"needs help"}"#);
}

#[tokio::test]
async fn a_modern_server_asks_by_name_and_takes_all_answers_at_once() {
    // mcp.md §9.2, tasks/update.
    let driver = ModernTasks::new(TaskLimits::default());
    let requests = format!(
        r#"{{"k2":{{"method":"sampling/createMessage","params":{{"x":1.0}}}},"k1":{{"method":"elicitation/create","params":{PARAMS}}}}}"#
    );
    let asked = format!(r#"{{"taskId":"r","status":"input_required","inputRequests":{requests}}}"#);
    let script = Script::new([result(&asked), result(r#"{"resultType":"complete"}"#)]);
    let report = driver.status(&script, handle()).await.unwrap();
    let shown = report.input_required.unwrap();
    assert!(shown.get().ends_with(&format!(r#""inputRequests":{requests}}}"#)), "{shown}");
    assert!(shown.get().starts_with(r#"{"kind":"elicitation","message":"Which?","requestedSchema":"#), "{shown}");

    driver.answer(&script, handle(), &[answer("k1"), answer("k2")]).await.unwrap();
    let body = answer("").body;
    let sent = format!(r#"tasks/update {{"taskId":"r","inputResponses":{{"k1":{body},"k2":{body}}}}}"#);
    assert_eq!(script.seen()[1], sent);
}

#[tokio::test]
async fn a_question_that_is_named_after_the_remotes_task_is_shown_without_that_name() {
    // Contract 2.3, never exposed.
    let driver = ModernTasks::new(TaskLimits::default());
    let task = caribou_ports::task_driver::TaskHandle { remote_id: "tk-7", ..handle() };
    let asked =
        r#"{"taskId":"tk-7","status":"input_required","inputRequests":{"tk-7:1":{"method":"elicitation/create"}}}"#;
    let script = Script::new([result(asked), result("{}")]);
    let shown = driver.status(&script, task).await.unwrap().input_required.unwrap();
    assert!(shown.get().contains(r#""inputRequests":{"{task}:1":"#) && !shown.get().contains("tk-7"), "{shown}");
    driver.answer(&script, task, &[answer("{task}:1")]).await.unwrap();
    assert!(script.seen()[1].contains(r#""inputResponses":{"tk-7:1":"#));
}
