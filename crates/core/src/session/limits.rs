//! How long one call may take (contract 4.5, architecture.md §9 and §10).

use std::time::Duration;

use crate::config::ServerConfig;

/// The bounds of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// From the moment the call is sent to its answer.
    pub total: Duration,
    /// The longest silence: renewed by each progress report.
    pub idle: Option<Duration>,
}

/// The bounds of one call to `server`: the caller's own, the server's, the transport's, and never more than `max`.
///
/// `tool_call_timeout` binds stdio calls; ordinary HTTP and SSE calls are bounded by `http` (contract 1.2).
pub fn call_limits(server: &ServerConfig, asked: Option<Duration>, http: Duration, max: Duration) -> CallLimits {
    let of_transport = if server.transport.owns_process() { server.tool_call_timeout } else { Some(http) };
    let total = [asked, of_transport].into_iter().flatten().fold(max, Duration::min);
    CallLimits { total, idle: server.tool_call_idle_timeout }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::config::{Source, parse};

    const HTTP: Duration = Duration::from_secs(300);
    const MAX: Duration = Duration::from_secs(3_600);

    fn good(body: &str) -> Arc<ServerConfig> {
        let text = format!(r#"{{"mcpServers": {{"a": {{{body}}}}}}}"#);
        let source = Source { file: Path::new("/x.json"), text: text.as_bytes() };
        parse(&source, &|_| None).unwrap().servers.remove(0).config.unwrap()
    }

    fn total(server: &str, asked: Option<u64>) -> u64 {
        call_limits(&good(server), asked.map(Duration::from_secs), HTTP, MAX).total.as_secs()
    }

    #[test]
    fn the_bound_of_a_server_binds_its_child_and_no_remote_server() {
        // Contract 1.2 and 4.5, `tool_call_timeout`; architecture.md §9, ordinary HTTP calls.
        assert_eq!(total(r#""command": "x", "tool_call_timeout": 5"#, None), 5);
        assert_eq!(total(r#""type": "http", "url": "http://h", "tool_call_timeout": 5"#, None), 300);
        assert_eq!(total(r#""type": "sse", "url": "http://h", "tool_call_timeout": 5"#, None), 300);
    }

    #[test]
    fn without_a_bound_a_call_has_that_of_the_replica() {
        // Contract 4.5, null; architecture.md §10: every call has a deadline.
        assert_eq!(total(r#""command": "x", "tool_call_timeout": null"#, None), 3_600);
        assert_eq!(total(r#""command": "x", "tool_call_timeout": 7200"#, None), 3_600);
    }

    #[test]
    fn the_shortest_bound_wins() {
        for (asked, server, expected) in [(3, 5, 3), (9, 5, 5), (9_000, 8_000, 3_600)] {
            assert_eq!(total(&format!(r#""command": "x", "tool_call_timeout": {server}"#), Some(asked)), expected);
        }
        let silent = good(r#""command": "x", "tool_call_idle_timeout": 2"#);
        assert_eq!(call_limits(&silent, None, HTTP, MAX).idle, Some(Duration::from_secs(2)));
    }
}
