//! Tasks of the protocol itself: which tools can be called as one, and what becomes of one call (mcp.md §9, §14.5).
//!
//! In the legacy era the caller decides: a tool states whether it must or may be called as a task, and the wish is only
//! sent to a server that declares to take it. In the modern era the server decides, call by call, for whoever says that
//! it can follow a task. Nothing is ever said or asked where nobody follows tasks to their ends.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::era::Era;
use crate::failure::Code;
use crate::raw::{self, Members};

/// The extension of the modern era by which a call may be answered by a task (mcp.md §9.2).
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The setting `native_tasks` of a server: what is made of the tasks of the protocol itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NativeTasks {
    /// Tools that must be called as a task are, those that may be when the caller asks for it, and in the modern era
    /// the server may answer any call by one.
    #[default]
    Auto,
    /// They are never asked for and never offered: every call is a plain one.
    Off,
}

/// When a call of a tool makes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Always: it is the submitting tool of a toolset (contract 6.11), or its server takes no other call of it.
    Always,
    /// When the caller asks for it.
    IfAsked,
    /// When the server likes.
    ServerDecides {
        /// Whether it says that it ever does.
        is_announced: bool,
    },
}

/// What a tool offers by the tasks of the protocol; `None` = its calls are plain ones. `capabilities` are the server's.
pub fn offer(setting: NativeTasks, era: Era, capabilities: Option<&RawValue>, tool: &RawValue) -> Option<Offer> {
    match (setting, era) {
        (NativeTasks::Off, _) => None,
        (NativeTasks::Auto, Era::Modern) => Some(Offer::ServerDecides { is_announced: announces(capabilities) }),
        // Whatever its tools state, a server that declares nothing is never sent the wish.
        (NativeTasks::Auto, Era::Legacy) if !takes_task_calls(capabilities) => None,
        (NativeTasks::Auto, Era::Legacy) => match support(tool).as_deref() {
            Some("required") => Some(Offer::Always),
            Some("optional") => Some(Offer::IfAsked),
            _ => None,
        },
    }
}

/// What a tool states of itself.
fn support(tool: &RawValue) -> Option<std::borrow::Cow<'_, str>> {
    let execution = Members::of(Members::of(tool)?.get("execution")?)?;
    raw::text(execution.get("taskSupport")?)
}

/// Whether a legacy server declares `tasks.requests.tools.call`.
fn takes_task_calls(capabilities: Option<&RawValue>) -> bool {
    let mut at = capabilities;
    for name in ["tasks", "requests", "tools", "call"] {
        at = at.and_then(Members::of).and_then(|members| members.get(name));
    }
    at.is_some_and(|call| Members::of(call).is_some())
}

/// Whether a modern server lists the extension among those that it has.
pub fn announces(capabilities: Option<&RawValue>) -> bool {
    let extensions = capabilities.and_then(Members::of).and_then(|members| members.get("extensions"));
    extensions.and_then(Members::of).is_some_and(|extensions| extensions.get(TASKS_EXTENSION).is_some())
}

/// How a tool is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As ever.
    Call,
    /// As ever, and the server is told that it may answer by a task.
    CallOrTask,
    /// As a task.
    Task,
}

/// Why a tool is not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWay {
    /// The caller asks for a task of a tool that makes none.
    #[error(
        "cannot be called as a task: no task toolset submits by it, and its server does not state that it can, or has \
         `native_tasks` off; leave `task` out"
    )]
    NoTask,
    /// Nobody follows tasks here.
    #[error(
        "is called as a task, and the MCP task runtime is not initialized: set mcp_tasks.enabled=true and a SQL \
         database (database.backend: sqlite or postgres), then restart"
    )]
    NotFollowed,
}

impl NoWay {
    /// The word a caller branches on.
    pub fn code(self) -> Code {
        match self {
            Self::NoTask => Code::Invalid,
            Self::NotFollowed => Code::Unavailable,
        }
    }
}

/// How a tool that offers this is called. `is_wanted`: the caller asks for a task; `is_followed`: tasks are followed to
/// their ends here.
///
/// # Errors
/// It cannot be called like that.
pub fn way(offer: Option<Offer>, is_wanted: bool, is_followed: bool) -> Result<Way, NoWay> {
    match offer {
        // A server that does not announce its tasks hardly has any: whoever asks for one is told, and no call is made.
        None | Some(Offer::ServerDecides { is_announced: false }) if is_wanted => Err(NoWay::NoTask),
        None => Ok(Way::Call),
        Some(Offer::Always) if is_followed => Ok(Way::Task),
        Some(Offer::IfAsked) if is_wanted && is_followed => Ok(Way::Task),
        Some(Offer::ServerDecides { .. }) if is_followed => Ok(Way::CallOrTask),
        Some(Offer::IfAsked | Offer::ServerDecides { .. }) if !is_wanted => Ok(Way::Call),
        Some(_) => Err(NoWay::NotFollowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    const TAKES: &str = r#"{"tools":{},"tasks":{"list":{},"requests":{"tools":{"call":{}}}}}"#;

    fn tool(support: &str) -> Box<RawValue> {
        raw(&format!(r#"{{"name":"t","inputSchema":{{}},"execution":{{"taskSupport":"{support}"}}}}"#))
    }

    #[test]
    fn a_legacy_tool_offers_what_it_states_if_its_server_declares_to_take_it() {
        // mcp.md §9.1, capability and tool level.
        let plain = raw(r#"{"name":"t"}"#);
        for (capabilities, tool, expected) in [
            (Some(TAKES), &tool("required"), Some(Offer::Always)),
            (Some(TAKES), &tool("optional"), Some(Offer::IfAsked)),
            (Some(TAKES), &tool("forbidden"), None),
            (Some(TAKES), &tool("sometimes"), None),
            (Some(TAKES), &plain, None),
            (Some(r#"{"tasks":{"requests":{"tools":{}}}}"#), &tool("required"), None),
            (Some(r#"{"tasks":{"requests":{"tools":{"call":null}}}}"#), &tool("required"), None),
            (Some(r#"{"tools":{}}"#), &tool("optional"), None),
            (None, &tool("required"), None),
        ] {
            let capabilities = capabilities.map(raw);
            let offered = offer(NativeTasks::Auto, Era::Legacy, capabilities.as_deref(), tool);
            assert_eq!(offered, expected, "{capabilities:?} {tool}");
            assert_eq!(offer(NativeTasks::Off, Era::Legacy, capabilities.as_deref(), tool), None);
        }
    }

    #[test]
    fn a_modern_server_decides_whatever_its_tools_state() {
        // mcp.md §9.2, who decides.
        let announcing = raw(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#);
        for (capabilities, is_announced) in [(None, false), (Some(&announcing), true)] {
            let capabilities = capabilities.map(|raw| &**raw);
            let offered = offer(NativeTasks::Auto, Era::Modern, capabilities, &tool("forbidden"));
            assert_eq!(offered, Some(Offer::ServerDecides { is_announced }));
            assert_eq!(offer(NativeTasks::Off, Era::Modern, capabilities, &tool("required")), None);
        }
    }

    #[test]
    fn a_task_is_asked_for_and_offered_only_where_it_is_followed() {
        // Contract 6.11, wrapper without an installed runtime.
        let decides = Some(Offer::ServerDecides { is_announced: true });
        let silent = Some(Offer::ServerDecides { is_announced: false });
        for (offer, is_wanted, is_followed, expected) in [
            (None, false, true, Ok(Way::Call)),
            (None, true, true, Err(NoWay::NoTask)),
            (None, true, false, Err(NoWay::NoTask)),
            (Some(Offer::Always), false, true, Ok(Way::Task)),
            (Some(Offer::Always), true, true, Ok(Way::Task)),
            (Some(Offer::Always), false, false, Err(NoWay::NotFollowed)),
            (Some(Offer::IfAsked), false, true, Ok(Way::Call)),
            (Some(Offer::IfAsked), true, true, Ok(Way::Task)),
            (Some(Offer::IfAsked), true, false, Err(NoWay::NotFollowed)),
            (Some(Offer::IfAsked), false, false, Ok(Way::Call)),
            (decides, false, true, Ok(Way::CallOrTask)),
            (decides, true, true, Ok(Way::CallOrTask)),
            (decides, false, false, Ok(Way::Call)),
            (decides, true, false, Err(NoWay::NotFollowed)),
            (silent, false, true, Ok(Way::CallOrTask)),
            (silent, false, false, Ok(Way::Call)),
            (silent, true, true, Err(NoWay::NoTask)),
            (silent, true, false, Err(NoWay::NoTask)),
        ] {
            assert_eq!(way(offer, is_wanted, is_followed), expected, "{offer:?} {is_wanted} {is_followed}");
        }
        assert_eq!((NoWay::NoTask.code(), NoWay::NotFollowed.code()), (Code::Invalid, Code::Unavailable));
    }
}
