//! How much is kept of what a server says (contract 6.8): whole or not at all, and never cut JSON.

use serde_json::{Value, json};

use super::stand::{FAST, Stand, running, says, script};

/// The end of a task of which a server says this, under these settings.
async fn end_of(told: Value, settings: &str) -> (Stand, Value) {
    let stand = Stand::http_with(script(json!([told]), json!([])), settings, json!({})).await;
    let ended = stand.ended().await;
    (stand, ended)
}

#[tokio::test]
async fn the_largest_result_is_kept_whole_and_one_byte_more_leaves_its_beginning() {
    // Contract 6.8, result; 6.1, max_result_bytes and result_preview_max_chars.
    let artifact = json!({ "uri": "file:///x", "mime_type": "text/csv", "size": 3 });
    let kept = json!({ "uri": "file:///x", "mime_type": "text/csv" });
    let text = |bytes: usize| json!("x".repeat(bytes - 2));
    let (_, whole) =
        end_of(says("completed", json!({ "result": text(65_536), "result_artifact": artifact })), FAST).await;
    assert_eq!((&whole["result"], &whole["result_truncated"]), (&text(65_536), &json!(false)));
    assert_eq!((&whole["result_preview"], &whole["result_artifact"]), (&Value::Null, &kept));

    let (stand, cut) =
        end_of(says("completed", json!({ "result": text(65_537), "result_artifact": artifact })), FAST).await;
    assert_eq!(
        (&cut["status"], &cut["result"], &cut["result_truncated"]),
        (&json!("completed"), &Value::Null, &json!(true))
    );
    assert_eq!((&cut["result_preview"], &cut["result_artifact"]), (&json!("x".repeat(2_000)), &kept));
    let last = stand.events(cut["task_id"].as_str().unwrap()).await.pop().unwrap();
    for member in ["result", "result_preview", "result_truncated", "result_artifact"] {
        assert_eq!(last[member], cut[member], "{member}");
    }

    let object = json!({ "rows": ["é".repeat(40_000)] });
    let (_, cut) = end_of(says("completed", json!({ "result": object })), FAST).await;
    assert_eq!(cut["result_preview"], json!(object.to_string().chars().take(2_000).collect::<String>()));

    let small = "poll_interval_seconds: 1, max_result_bytes: 1024, result_preview_max_chars: 64";
    let (_, cut) = end_of(says("completed", json!({ "result": text(1_025) })), small).await;
    assert_eq!(cut["result_preview"], json!("x".repeat(64)));
}

#[tokio::test]
async fn numbers_and_the_order_of_members_of_a_result_stay_as_they_came() {
    // Invariant W1; contract 6.7, any JSON.
    let told = r#"{"b":9223372036854775809123,"a":1.0,"c":"\u0000"}"#;
    let raw = format!(r#"{{"task_id":"$TASK","status":"completed","result":{told}}}"#);
    let raw: Box<serde_json::value::RawValue> = serde_json::from_str(&raw).unwrap();
    let text = format!(
        r#"{{"calls":{{"submit":[{{"structured":{{"task_id":"r","status":"running"}}}}],
            "status":[{{"structured":{}}}],"cancel":["default"],"input":["default"]}}}}"#,
        raw.get()
    );
    let fake = caribou_tests::HttpFake::start(text.as_str()).await;
    let setup = caribou_tests::Setup::new().settings(&super::stand::mcp_tasks(FAST));
    let stand = Stand::before(fake, setup, json!({})).await;
    let ended = stand.ended().await;
    let shown = stand.caribou.get(&format!("{}/{}", super::stand::THREAD, ended["task_id"].as_str().unwrap())).await;
    assert_eq!(shown.raw("result"), told);
}

#[tokio::test]
async fn an_error_is_kept_to_4000_characters_and_shown_to_500() {
    // Contract 6.8, error; 2.3, first 500 characters.
    let (stand, ended) = end_of(says("failed", json!({ "error": "é".repeat(4_001) })), FAST).await;
    assert_eq!(ended["error"], json!("é".repeat(500)));
    let [listed] = &stand.listed().await[..] else { panic!("one task") };
    assert_eq!(listed["error"], json!("é".repeat(500)));
    let last = stand.events(ended["task_id"].as_str().unwrap()).await.pop().unwrap();
    assert_eq!(last["error"], json!("é".repeat(4_000)));
}

#[tokio::test]
async fn a_question_or_a_reference_that_is_too_large_ends_the_task_and_is_not_kept() {
    // Contract 6.8, input_required and result_artifact.
    let question = |bytes: usize| json!({ "q": "x".repeat(bytes - 8) });
    let artifact = |bytes: usize| json!({ "uri": "u".repeat(bytes - 26), "mime_type": "m" });
    let asked = says("input_required", json!({ "input_required": question(65_536) }));
    let stand = Stand::http(script(json!([asked]), json!([]))).await;
    let task = stand.submit().await;
    let shown = stand.until(&task, "input_required").await;
    assert_eq!(shown["input_required"], question(65_536));
    for (told, said) in [
        (says("input_required", json!({ "input_required": question(65_537) })), "input_required has more than 65536"),
        (says("completed", json!({ "result_artifact": artifact(65_537) })), "result_artifact has more than 65536"),
    ] {
        let (_, ended) = end_of(told, FAST).await;
        assert_eq!(ended["status"], "failed");
        assert!(ended["error"].as_str().unwrap().contains(said), "{said}: {}", ended["error"]);
        assert_eq!((&ended["input_required"], &ended["result_artifact"]), (&Value::Null, &Value::Null));
    }
}

#[tokio::test]
async fn an_answer_beyond_what_is_read_at_all_ends_the_task() {
    // architecture.md §10, oversized status answer.
    let settings = "poll_interval_seconds: 1, max_status_bytes: 65536";
    let (stand, ended) = end_of(says("completed", json!({ "result": "x".repeat(65_536) })), settings).await;
    assert_eq!(ended["status"], "failed", "{ended}");
    assert!(ended["error"].as_str().unwrap().contains("65536"), "{ended}");
    assert_eq!(stand.calls("status"), 1);
}

#[tokio::test]
async fn what_a_cancel_brings_is_kept_by_the_same_rules() {
    // Contract 6.8: every snapshot.
    let ended = says("completed", json!({ "result": "x".repeat(70_000), "error": "e".repeat(4_001) }));
    let stand = Stand::http(script(json!([running()]), json!([ended]))).await;
    let task = stand.submit().await;
    stand.cancel(&task).await;
    let shown = stand.until(&task, "completed").await;
    assert_eq!((&shown["result"], &shown["result_truncated"]), (&Value::Null, &json!(true)));
    assert_eq!(shown["result_preview"], json!("x".repeat(2_000)));
    let last = stand.events(&task).await.pop().unwrap();
    assert_eq!(last["error"], json!("e".repeat(4_000)));
}
