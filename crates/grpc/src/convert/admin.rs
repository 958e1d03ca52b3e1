//! How a replica is, and its servers as they are stored.

use std::time::Duration;

use caribou_core::config::ServersByName;
use caribou_core::failure::Code;
use caribou_proto::v1;
use caribou_runtime::{ConfigView, ReplicaStatus, ResetDone, ServerStatus, SessionStatus, VerbError, wall_clock_ms};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::tasks::instant;

/// One replica.
pub(crate) fn replica(status: ReplicaStatus) -> v1::ReplicaStatus {
    let age_ms = i64::try_from(status.age.as_millis()).unwrap_or(i64::MAX);
    v1::ReplicaStatus {
        boot: status.boot.to_string(),
        host: status.host,
        version: status.version,
        address: status.address.unwrap_or_default(),
        alive: status.is_alive,
        draining: status.is_draining,
        load: status.load,
        started_at: Some(instant(wall_clock_ms().saturating_sub(age_ms).saturating_mul(1_000))),
    }
}

/// One server.
pub(crate) fn server(status: ServerStatus) -> v1::ServerStatus {
    v1::ServerStatus {
        name: status.name.to_string(),
        state: status.state.as_str().to_owned(),
        tools: count(status.tools),
        sessions: count(status.sessions),
        last_error: status.last_error.unwrap_or_default(),
    }
}

/// One session.
pub(crate) fn session(status: SessionStatus) -> v1::SessionStatus {
    v1::SessionStatus {
        server: status.server.to_string(),
        user_id: status.scope.user.to_string(),
        thread_id: status.scope.thread.to_string(),
        epoch: status.epoch.0,
        replica: status.replica.to_string(),
        in_flight: status.in_flight.map(count),
        age_ms: millis(status.age),
        idle_ms: status.idle.map(millis),
    }
}

/// How far a reset went.
pub(crate) fn reset(done: ResetDone) -> v1::ResetResponse {
    v1::ResetResponse {
        reach: done.reach.as_str().to_owned(),
        confirmed: done.confirmed.iter().map(ToString::to_string).collect(),
        unconfirmed: done.unconfirmed.iter().map(ToString::to_string).collect(),
    }
}

/// The document, as it is shown and written.
#[derive(Serialize)]
struct Shown<'s> {
    mcp_servers: &'s Map<String, Value>,
}

/// What is stored.
pub(crate) fn config(view: ConfigView) -> v1::Config {
    v1::Config {
        // A map of values is always written.
        servers: serde_json::to_string(&Shown { mcp_servers: &view.servers }).unwrap_or_default(),
        etag: view.etag.map(|tag| tag.to_string()).unwrap_or_default(),
        pending_restart: view.pending_restart.iter().map(ToString::to_string).collect(),
    }
}

/// The servers that a caller writes.
///
/// # Errors
/// `invalid`: the text is no document of servers. Nothing of it is repeated.
pub(crate) fn written(text: &str) -> Result<Map<String, Value>, VerbError> {
    let written = serde_json::from_str::<Written>(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let detail = format!("`servers` is no document of servers by name, each once (line {line}, column {column})");
        VerbError::new(Code::Invalid, detail)
    })?;
    Ok(written.mcp_servers.0)
}

#[derive(Deserialize)]
struct Written {
    mcp_servers: ServersByName,
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_keep_their_order_and_must_be_objects_of_distinct_names() {
        let servers = written(r#"{"mcp_servers": {"z": {"command": "x"}, "a": {}}}"#).unwrap();
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["z", "a"]);
        for wrong in ["", "[]", "{}", r#"{"mcp_servers": {"hunter2": 1}}"#, r#"{"mcp_servers": {"a": {}, "a": {}}}"#] {
            let refused = written(wrong).unwrap_err();
            assert!(refused.code == Code::Invalid && !refused.detail.contains("hunter2"), "{wrong}");
        }
    }

    #[test]
    fn what_is_shown_can_be_written() {
        let servers = written(r#"{"mcp_servers":{"z":{"command":"x"}}}"#).unwrap();
        let shown = config(ConfigView { servers: servers.clone(), etag: None, pending_restart: Vec::new() });
        assert_eq!((written(&shown.servers).unwrap(), &*shown.etag), (servers, ""));
    }
}
