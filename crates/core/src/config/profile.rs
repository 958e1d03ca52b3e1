//! What is declared to a server (architecture.md §10, one declared profile per server).
//!
//! Owns what is declared where nothing is configured: what Caribou can answer, and nothing else.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::ServerConfig;
use crate::task::NativeTasks;

impl ServerConfig {
    /// The capabilities that are declared to it when a session is opened, and with what is asked about its tasks. Unless
    /// they are configured, what can be answered: the questions of its tasks, where those are followed (architecture.md
    /// §10, one declared profile).
    pub fn profile(&self) -> Map<String, Value> {
        let answered = || match self.native_tasks {
            NativeTasks::Auto => Map::from_iter([("elicitation".to_owned(), Value::Object(Map::new()))]),
            NativeTasks::Off => Map::new(),
        };
        self.client_capabilities.clone().unwrap_or_else(answered)
    }

    /// The same server where nobody follows tasks.
    pub fn without_native_tasks(self: &Arc<Self>) -> Arc<Self> {
        match self.native_tasks {
            NativeTasks::Off => self.clone(),
            NativeTasks::Auto => Arc::new(Self { native_tasks: NativeTasks::Off, ..(**self).clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::samples::good;

    #[test]
    fn questions_of_tasks_are_declared_where_tasks_are_followed_unless_a_profile_is_written() {
        // architecture.md §10, one declared profile per server.
        for (body, declared) in [
            ("", r#"{"elicitation":{}}"#),
            (r#", "native_tasks": "auto""#, r#"{"elicitation":{}}"#),
            (r#", "native_tasks": "off""#, "{}"),
            (r#", "client_capabilities": {}"#, "{}"),
            (r#", "client_capabilities": {"roots": {}}"#, r#"{"roots":{}}"#),
            (r#", "client_capabilities": null"#, r#"{"elicitation":{}}"#),
        ] {
            let server = good(&format!(r#""command": "x"{body}"#));
            assert_eq!(serde_json::to_string(&server.profile()).unwrap(), declared, "{body}");
        }
        let off = good(r#""command": "x""#).without_native_tasks();
        assert_eq!((off.native_tasks, off.profile().len()), (NativeTasks::Off, 0));
        assert!(Arc::ptr_eq(&off, &off.without_native_tasks()));
    }
}
