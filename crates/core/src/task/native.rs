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

/// What the caller of a tool says of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// Nothing: it learns of a task from the answer, whoever decided that there is one.
    #[default]
    Unsaid,
    /// It asks for one.
    Asked,
    /// It takes one wherever there may be one: a client of the modern era that declares the extension (mcp.md §14.5).
    Taken,
    /// It would rather have the result: a task only where there is no other call.
    Spared,
    /// It can take none: a client of the modern era that does not declare the extension.
    Refused,
}

impl From<bool> for Wish {
    /// Of callers that ask for a task or say nothing.
    fn from(is_asked: bool) -> Self {
        if is_asked { Self::Asked } else { Self::Unsaid }
    }
}

/// What a tool is to clients of revision 2025-11-25, by their words (mcp.md §9.1, tool level).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Support {
    /// A call of it is never a task.
    #[default]
    Forbidden,
    /// It may be.
    Optional,
    /// It must be.
    Required,
}

impl Support {
    /// Of a tool that offers this. The submitting tool of a toolset is also called plainly: then its answer names the
    /// task.
    pub fn of(offer: Option<Offer>, is_native: bool) -> Self {
        match offer {
            None | Some(Offer::ServerDecides { is_announced: false }) => Self::Forbidden,
            Some(Offer::Always) if is_native => Self::Required,
            Some(_) => Self::Optional,
        }
    }
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
    /// The caller can take no task, and the tool takes no other call.
    #[error("is called as a task only: declare the extension `io.modelcontextprotocol/tasks` with the call")]
    NotTaken,
}

impl NoWay {
    /// The word a caller branches on.
    pub fn code(self) -> Code {
        match self {
            Self::NoTask | Self::NotTaken => Code::Invalid,
            Self::NotFollowed => Code::Unavailable,
        }
    }
}

/// How a tool that offers this is called. `is_followed`: tasks are followed to their ends here.
///
/// # Errors
/// It cannot be called like that.
pub fn way(offer: Option<Offer>, wish: Wish, is_followed: bool) -> Result<Way, NoWay> {
    match (offer, wish) {
        // A server that does not announce its tasks hardly has any: whoever asks for one is told, and no call is made.
        (None | Some(Offer::ServerDecides { is_announced: false }), Wish::Asked) => Err(NoWay::NoTask),
        (None, _) => Ok(Way::Call),
        (Some(Offer::Always), _) if !is_followed => Err(NoWay::NotFollowed),
        (Some(Offer::Always), Wish::Refused) => Err(NoWay::NotTaken),
        (Some(Offer::Always), _) => Ok(Way::Task),
        // What a client cannot take is not offered in its name either.
        (Some(_), Wish::Spared | Wish::Refused) => Ok(Way::Call),
        (Some(_), Wish::Asked) if !is_followed => Err(NoWay::NotFollowed),
        (Some(_), _) if !is_followed => Ok(Way::Call),
        (Some(Offer::IfAsked), Wish::Asked | Wish::Taken) => Ok(Way::Task),
        (Some(Offer::IfAsked), Wish::Unsaid) => Ok(Way::Call),
        (Some(Offer::ServerDecides { .. }), _) => Ok(Way::CallOrTask),
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

    const DECIDES: Option<Offer> = Some(Offer::ServerDecides { is_announced: true });
    const SILENT: Option<Offer> = Some(Offer::ServerDecides { is_announced: false });

    #[test]
    fn a_task_is_asked_for_and_offered_only_where_it_is_followed() {
        // Contract 6.11, wrapper without an installed runtime.
        let (unsaid, asked) = (Wish::from(false), Wish::from(true));
        for (offer, wish, is_followed, expected) in [
            (None, unsaid, true, Ok(Way::Call)),
            (None, asked, true, Err(NoWay::NoTask)),
            (None, asked, false, Err(NoWay::NoTask)),
            (Some(Offer::Always), unsaid, true, Ok(Way::Task)),
            (Some(Offer::Always), asked, true, Ok(Way::Task)),
            (Some(Offer::Always), unsaid, false, Err(NoWay::NotFollowed)),
            (Some(Offer::IfAsked), unsaid, true, Ok(Way::Call)),
            (Some(Offer::IfAsked), asked, true, Ok(Way::Task)),
            (Some(Offer::IfAsked), asked, false, Err(NoWay::NotFollowed)),
            (Some(Offer::IfAsked), unsaid, false, Ok(Way::Call)),
            (DECIDES, unsaid, true, Ok(Way::CallOrTask)),
            (DECIDES, asked, true, Ok(Way::CallOrTask)),
            (DECIDES, unsaid, false, Ok(Way::Call)),
            (DECIDES, asked, false, Err(NoWay::NotFollowed)),
            (SILENT, unsaid, true, Ok(Way::CallOrTask)),
            (SILENT, unsaid, false, Ok(Way::Call)),
            (SILENT, asked, true, Err(NoWay::NoTask)),
            (SILENT, asked, false, Err(NoWay::NoTask)),
        ] {
            assert_eq!(way(offer, wish, is_followed), expected, "{offer:?} {wish:?} {is_followed}");
        }
        let codes = [NoWay::NoTask, NoWay::NotFollowed, NoWay::NotTaken].map(NoWay::code);
        assert_eq!(codes, [Code::Invalid, Code::Unavailable, Code::Invalid]);
    }

    #[test]
    fn a_client_that_takes_tasks_is_given_them_and_one_that_cannot_is_not() {
        // mcp.md §14.5.
        for (offer, wish, is_followed, expected) in [
            (None, Wish::Taken, true, Ok(Way::Call)),
            (Some(Offer::Always), Wish::Taken, true, Ok(Way::Task)),
            (Some(Offer::IfAsked), Wish::Taken, true, Ok(Way::Task)),
            (Some(Offer::IfAsked), Wish::Taken, false, Ok(Way::Call)),
            (DECIDES, Wish::Taken, true, Ok(Way::CallOrTask)),
            (SILENT, Wish::Taken, true, Ok(Way::CallOrTask)),
            (SILENT, Wish::Taken, false, Ok(Way::Call)),
            (None, Wish::Spared, true, Ok(Way::Call)),
            (Some(Offer::Always), Wish::Spared, true, Ok(Way::Task)),
            (Some(Offer::IfAsked), Wish::Spared, true, Ok(Way::Call)),
            (DECIDES, Wish::Spared, true, Ok(Way::Call)),
            (None, Wish::Refused, true, Ok(Way::Call)),
            (Some(Offer::Always), Wish::Refused, true, Err(NoWay::NotTaken)),
            (Some(Offer::Always), Wish::Refused, false, Err(NoWay::NotFollowed)),
            (Some(Offer::IfAsked), Wish::Refused, true, Ok(Way::Call)),
            (DECIDES, Wish::Refused, true, Ok(Way::Call)),
            (SILENT, Wish::Refused, true, Ok(Way::Call)),
        ] {
            assert_eq!(way(offer, wish, is_followed), expected, "{offer:?} {wish:?} {is_followed}");
        }
    }

    #[test]
    fn only_what_is_ready_to_be_a_task_says_so_to_clients() {
        // mcp.md §14.5, L with tasks.
        assert_eq!(Support::of(None, true), Support::Forbidden);
        assert_eq!(Support::of(SILENT, true), Support::Forbidden);
        assert_eq!(Support::of(DECIDES, true), Support::Optional);
        assert_eq!(Support::of(Some(Offer::IfAsked), true), Support::Optional);
        assert_eq!(Support::of(Some(Offer::Always), true), Support::Required);
        assert_eq!(Support::of(Some(Offer::Always), false), Support::Optional);
    }
}
