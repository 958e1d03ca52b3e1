//! One row before it is stored. Cheap to make: names are shared, nothing is formatted.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds::MAX_AUDIT_TEXT_BYTES;
use caribou_core::ids::{RequestId, Scope, ServerName, ThreadId, UserId};
use caribou_ports::store::AuditRow;

use super::wall_clock::wall_clock_ms;
use crate::caller::{Caller, Door};

/// Something that was done, or refused.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// When it ended, in milliseconds of the Unix epoch.
    pub(crate) at_ms: i64,
    /// Who asked for it.
    pub(crate) principal: Arc<str>,
    /// For whom.
    pub(crate) user: UserId,
    /// In which thread; `None` = it is about none.
    pub(crate) thread: Option<ThreadId>,
    /// What: the verb's name, or what came of it, such as `launch_refused`.
    pub(crate) action: &'static str,
    /// With which server; `None` = it is about none.
    pub(crate) server: Option<ServerName>,
    /// The visible name of the tool; `None` = it is about none.
    pub(crate) tool: Option<Arc<str>>,
    /// `ok`, or the error's code.
    pub(crate) outcome: &'static str,
    /// How long it took.
    pub(crate) took: Duration,
    /// Names the request; `None` = it has no name.
    pub(crate) request_id: Option<RequestId>,
    /// By which door it came.
    pub(crate) door: Door,
}

impl Entry {
    /// `action` of `caller` for itself, about no thread, server or tool, that went well now and took no time.
    pub(crate) fn new(action: &'static str, caller: &Caller) -> Self {
        Self {
            at_ms: wall_clock_ms(),
            principal: caller.principal.id.clone(),
            user: caller.principal.user.clone(),
            thread: None,
            action,
            server: None,
            tool: None,
            outcome: OK,
            took: Duration::ZERO,
            request_id: caller.request_id.clone(),
            door: caller.door,
        }
    }

    /// In the request of this name.
    pub(crate) fn named(mut self, request_id: &RequestId) -> Self {
        self.request_id = Some(request_id.clone());
        self
    }

    /// For this user, in this thread.
    pub(crate) fn within(mut self, scope: &Scope) -> Self {
        self.user = scope.user.clone();
        self.thread = Some(scope.thread.clone());
        self
    }

    /// Of the tool of this visible name. It may be anything that a caller wrote, so it is cut here, where it would be
    /// kept in the buffer.
    pub(crate) fn of_tool(mut self, visible_name: &str) -> Self {
        self.tool = Some(cut(visible_name).into());
        self
    }

    /// As it is stored.
    pub(super) fn into_row(self) -> AuditRow {
        AuditRow {
            at_ms: self.at_ms,
            principal: clean(&self.principal),
            user: clean(self.user.as_str()),
            thread: self.thread.map(|thread| clean(thread.as_str())).unwrap_or_default(),
            action: self.action.to_owned(),
            server: self.server.map(|server| clean(server.as_str())).unwrap_or_default(),
            tool: self.tool.map(|tool| clean(&tool)).unwrap_or_default(),
            outcome: self.outcome.to_owned(),
            duration_ms: i64::try_from(self.took.as_millis()).unwrap_or(i64::MAX),
            request_id: self.request_id.map(|id| clean(id.as_str())).unwrap_or_default(),
            door: self.door.as_str().to_owned(),
        }
    }
}

/// The outcome of what went well.
pub(super) const OK: &str = "ok";

/// As much of it as is kept.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_AUDIT_TEXT_BYTES)]
}

/// What is kept of a text: control characters would move terminals, and PostgreSQL has no place for one of them.
fn clean(text: &str) -> String {
    let text = cut(text);
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_wrote_is_cut_and_cleaned() {
        // Invariant B1.
        let caller = Caller::local(Door::Rest);
        let entry = Entry::new("call_tool", &Caller { request_id: Some(RequestId::from("r\n1")), ..caller });
        let row = entry.within(&Scope::new(Some("ann"), Some("t"))).of_tool(&"\0\u{fc}".repeat(1_000)).into_row();
        assert_eq!((&*row.request_id, &*row.user, &*row.thread), ("r\u{fffd}1", "ann", "t"));
        assert_eq!(row.tool, "\u{fffd}\u{fc}".repeat(MAX_AUDIT_TEXT_BYTES / 3) + "\u{fffd}");
    }

    #[test]
    fn what_an_entry_is_not_about_is_empty() {
        let row = Entry::new("reset", &Caller::local(Door::Cli)).into_row();
        assert_eq!([&*row.thread, &*row.server, &*row.tool, &*row.request_id], [""; 4]);
        assert_eq!((&*row.principal, &*row.user, &*row.door, &*row.outcome), ("local", "default", "cli", "ok"));
        assert!(row.at_ms > 1_700_000_000_000);
    }
}
