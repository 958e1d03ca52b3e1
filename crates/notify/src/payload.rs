//! What a webhook is sent. The same words each time for one key: a receiver may compare them.

use caribou_core::notification::{Key, agent_message};
use caribou_ports::event_sink::{ChainEnded, Told};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::timestamp::rfc3339;

#[derive(Serialize)]
struct Payload<'a> {
    r#type: &'static str,
    timestamp: String,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    user_id: &'a str,
    thread_id: &'a str,
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a str>,
    mcp_task_notification: Launch,
    event: Option<&'a RawValue>,
    agent_message: String,
}

#[derive(Serialize)]
struct Launch {
    task_id: String,
    dispatch_version: i64,
    dispatch_attempt: u32,
}

/// The body.
pub(crate) fn payload(told: &Told) -> Vec<u8> {
    let Key { task, seq, attempt } = told.key;
    let payload = Payload {
        r#type: "mcp_task.event",
        timestamp: rfc3339(told.at_us),
        data: Data {
            user_id: told.scope.user.as_str(),
            thread_id: told.scope.thread.as_str(),
            server: told.server.as_str(),
            run_id: told.run_id.as_deref(),
            mcp_task_notification: Launch {
                task_id: task.to_string(),
                dispatch_version: seq,
                dispatch_attempt: attempt,
            },
            event: serde_json::from_str(&told.body).ok(),
            agent_message: agent_message(&told.body),
        },
    };
    // Strings, numbers and raw JSON: writing them does not fail.
    serde_json::to_vec(&payload).unwrap_or_default()
}

#[derive(Serialize)]
struct EndPayload<'a> {
    r#type: &'static str,
    data: EndData<'a>,
}

#[derive(Serialize)]
struct EndData<'a> {
    server: &'a str,
    generation: u64,
    reason: &'a str,
}

/// The body that tells of the end of a chain of refresh tokens.
pub(crate) fn end_payload(ended: &ChainEnded) -> Vec<u8> {
    let payload = EndPayload {
        r#type: "mcp_oauth.reauth_needed",
        data: EndData { server: ended.server.as_str(), generation: ended.generation, reason: &ended.why },
    };
    // Strings and a number: writing them does not fail.
    serde_json::to_vec(&payload).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use caribou_core::ids::Scope;
    use caribou_core::task::TaskId;
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_payload_names_the_launch_and_holds_the_event_byte_for_byte() {
        // Contract 6.9, launched run; invariant W1.
        let told = Told {
            key: Key { task: TaskId([0xab; 16]), seq: 3, attempt: 1 },
            scope: Scope::new(Some("ann"), Some("t1")),
            server: "jobs".into(),
            run_id: Some("r1".to_owned()),
            body: r#"{"b":1.0,"a":9223372036854775809123}"#.to_owned(),
            at_us: 1_500_000,
        };
        let text = String::from_utf8(payload(&told)).unwrap();
        assert!(text.contains(r#""event":{"b":1.0,"a":9223372036854775809123},"#), "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&read["type"], &read["timestamp"]),
            (&"mcp_task.event".into(), &"1970-01-01T00:00:01.500000Z".into())
        );
        let data = &read["data"];
        assert_eq!(
            data["mcp_task_notification"],
            serde_json::json!({
                "task_id": format!("mcp-task-{}", "ab".repeat(16)), "dispatch_version": 3, "dispatch_attempt": 1
            })
        );
        let names = ["user_id", "thread_id", "server", "run_id"].map(|name| data[name].as_str().unwrap());
        assert_eq!(names, ["ann", "t1", "jobs", "r1"]);
        assert_eq!(data["agent_message"], agent_message(&told.body));
        assert_eq!(payload(&told), text.into_bytes(), "the same words each time");
    }
}
