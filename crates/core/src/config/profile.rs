//! What is declared to a server (architecture.md §10, one declared profile per server).
//!
//! Owns what is declared where nothing is configured: what Caribou can answer or pass on to whoever called, and nothing
//! else. What a caller cannot be asked is declined.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::ServerConfig;
use crate::task::NativeTasks;

impl ServerConfig {
    /// The capabilities that are declared to it when a session is opened. The same for every session, so that its tools
    /// are the same in all of them (architecture.md §10, one declared profile): unless they are configured, all that
    /// callers can be asked.
    pub fn profile(&self) -> Map<String, Value> {
        let passed_on = || {
            let elicitation = json!({ "form": {}, "url": {} });
            Map::from_iter([
                ("elicitation".to_owned(), elicitation),
                ("sampling".to_owned(), json!({})),
                ("roots".to_owned(), json!({})),
            ])
        };
        self.client_capabilities.clone().unwrap_or_else(passed_on)
    }

    /// The capabilities that are declared with what is asked about its tasks, where those are followed: unless they are
    /// configured, the one kind of question that whoever follows a task is asked.
    pub fn task_profile(&self) -> Map<String, Value> {
        let answered = || match self.native_tasks {
            NativeTasks::Auto => Map::from_iter([("elicitation".to_owned(), json!({}))]),
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
    fn all_that_callers_can_be_asked_is_declared_unless_a_profile_is_written() {
        // architecture.md §10, one declared profile per server.
        let all = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;
        for (body, declared, of_tasks) in [
            ("", all, r#"{"elicitation":{}}"#),
            (r#", "native_tasks": "auto""#, all, r#"{"elicitation":{}}"#),
            (r#", "native_tasks": "off""#, all, "{}"),
            (r#", "client_capabilities": {}"#, "{}", "{}"),
            (r#", "client_capabilities": {"roots": {}}"#, r#"{"roots":{}}"#, r#"{"roots":{}}"#),
            (r#", "client_capabilities": null"#, all, r#"{"elicitation":{}}"#),
        ] {
            let server = good(&format!(r#""command": "x"{body}"#));
            assert_eq!(serde_json::to_string(&server.profile()).unwrap(), declared, "{body}");
            assert_eq!(serde_json::to_string(&server.task_profile()).unwrap(), of_tasks, "{body}");
        }
        let off = good(r#""command": "x""#).without_native_tasks();
        assert_eq!((off.native_tasks, off.task_profile().len()), (NativeTasks::Off, 0));
        assert!(Arc::ptr_eq(&off, &off.without_native_tasks()));
    }
}
