//! What passes between two replicas that understand one another.

use std::sync::{Arc, Mutex};

use caribou_core::config::Secret;
use caribou_core::ids::{Epoch, Scope};
use caribou_ports::mcp::{CallError, Progress, RawRequest};
use caribou_ports::peers::{Change, ClientSays, ClientWord, Listed, Nudge, Peers as _};
use serde_json::value::RawValue;

use super::stand::{Replica, SOON, call, client, member, open, peer, wanted};

#[tokio::test]
async fn a_session_is_opened_with_its_key_and_headers_and_tells_its_facts() {
    let replica = Replica::plain("b").await;
    let client = client(member());
    let opened = client.open(peer("b", replica.address), wanted(None)).await.unwrap();
    assert_eq!(opened.epoch, Epoch(7));
    assert_eq!(*replica.owner.opened.lock().unwrap(), ["s/ann:t1 hunter2"]);
    let facts = opened.session.facts();
    assert_eq!((&*facts.version, facts.stateful, facts.pid), ("2025-11-25", true, Some(4)));
    assert_eq!(facts.server_info.as_ref().unwrap().get(), r#"{"name":"fake","n":1.0}"#);
    // It is not ours to close.
    opened.session.close().await;
    assert!(opened.session.call_tool(call("echo", None)).await.is_ok());
    assert_eq!(opened.session.stderr_tail(), "");
}

/// Invariant W1.
#[tokio::test]
async fn arguments_and_results_pass_byte_for_byte() {
    let replica = Replica::plain("b").await;
    let session = open(&client(member()), "b", replica.address).await.unwrap();
    let long = format!("[\"{}\", 1.0]", "\u{fc}".repeat(5 * 1024 * 1024 / 2));
    for arguments in [r#"{"z":1.0,"a":18446744073709551617,"a":2,"n":null}"#, "null", r#"{ "blank" : [] }"#, &long] {
        let result = session.call_tool(call("echo", Some(arguments))).await.unwrap();
        assert!(result.get() == arguments, "{} bytes", arguments.len());
    }
    let absent = session.call_tool(call("echo", None)).await.unwrap();
    assert_eq!(absent.get(), r#""absent""#);
    let mut with_headers = call("headers", None);
    with_headers.headers = vec![("X-A".to_owned(), Secret::new("1")), ("x-a".to_owned(), Secret::new("2"))];
    assert_eq!(session.call_tool(with_headers).await.unwrap().get(), r#""X-A=1;x-a=2""#);
    let refused = session.call_tool(call("none", Some(r#"{"f":1.0}"#))).await.unwrap_err();
    let CallError::Rpc { code: -32602, data: Some(data), .. } = refused else { panic!("{refused:?}") };
    assert_eq!(data.get(), r#"{"f":1.0}"#);
}

#[tokio::test]
async fn every_method_of_a_session_is_answered() {
    let replica = Replica::plain("b").await;
    let session = open(&client(member()), "b", replica.address).await.unwrap();
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    let request = RawRequest {
        method: "tasks/get".into(),
        params: raw(r#"{"taskId":1.0}"#),
        headers: Vec::new(),
        progress: None,
    };
    assert_eq!(session.request(request).await.unwrap().get(), r#"["tasks/get",{"taskId":1.0}]"#);
    let listing = session.list_tools().await.unwrap();
    assert_eq!((listing.tools[0].get(), &*listing.warnings[0]), (r#"{"name":"t","x":1.0}"#, "odd"));
    assert_eq!(session.task_questions("t").await.unwrap()[0].name, "q-of-t");
    assert!(session.answer_task("t", "q", raw("{}")).await.unwrap());
    assert!(!session.answer_task("t", "other", raw("{}")).await.unwrap());
}

#[tokio::test]
async fn progress_comes_in_order_before_the_result() {
    let replica = Replica::plain("b").await;
    let session = open(&client(member()), "b", replica.address).await.unwrap();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let heard = reports.clone();
    let mut counted = call("count", None);
    counted.progress = Some(Arc::new(move |progress| match progress {
        Progress::Progress(params) | Progress::Message(params) => heard.lock().unwrap().push(params.get().to_owned()),
    }));
    assert_eq!(session.call_tool(counted).await.unwrap().get(), r#""true""#, "a token is asked for");
    let expected: Vec<_> = (0..100).map(|n| format!(r#"{{"progress":{n}.0}}"#)).collect();
    assert_eq!(*reports.lock().unwrap(), expected);
    assert_eq!(session.call_tool(call("count", None)).await.unwrap().get(), r#""false""#, "nobody listens");
}

#[tokio::test]
async fn what_a_client_says_is_passed_on_to_the_life_that_is_meant() {
    let replica = Replica::plain("b").await;
    let client = client(member());
    let says = ClientSays::Cancels("\"r-1\"".to_owned());
    let word = ClientWord { session: "s".to_owned(), says };
    assert!(client.tell(peer("b", replica.address), word.clone()).await.unwrap());
    assert_eq!(*replica.owner.words.lock().unwrap(), [format!("{word:?}")]);
    assert!(client.tell(peer("c", replica.address), word).await.is_err(), "another life");
    assert_eq!(replica.owner.words.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn sessions_are_closed_and_hints_are_given() {
    let replica = Replica::plain("b").await;
    let client = client(member());
    let closed = client.close_sessions(peer("b", replica.address), Scope::new(Some("ann"), None), None).await;
    assert_eq!(closed.unwrap(), 2);
    let of_one = client.close_sessions(peer("b", replica.address), Scope::catalog(), Some("s".into())).await;
    assert_eq!(of_one.unwrap(), 2);
    assert_eq!(*replica.owner.opened.lock().unwrap(), ["closed ann:default all", "closed : s"]);

    let mut nudges = replica.owner.nudges.subscribe();
    let listed = || Listed::of("s".into());
    let changes = [Change::Tools(listed()), Change::Prompts(listed()), Change::Resources(listed())];
    let told = changes.into_iter().chain([Change::Client("c1".to_owned())]).map(Nudge::Told);
    let all = [Nudge::Generations, Nudge::Work, Nudge::Chains].into_iter().chain(told);
    for (heard, about) in all.enumerate() {
        client.nudge(peer("b", replica.address), about.clone());
        let arrived = nudges.wait_for(|nudges| nudges.len() > heard);
        let last = tokio::time::timeout(SOON, arrived).await.unwrap().unwrap().last().cloned();
        assert_eq!(last, Some(about));
    }
}
