//! The task that a call of a tool makes, or may make: by the toolsets of its server, or by the protocol itself.

use std::sync::Arc;

use caribou_core::config::ServerConfig;
use caribou_core::era::Era;
use caribou_core::task::exposure::{self, Role};
use caribou_core::task::limits::MAX_TASK_NAME_CHARS;
use caribou_core::task::native::{self, Offer};
use caribou_core::tool::CatalogTool;
use caribou_ports::mcp::SessionFacts;

use crate::tasks::{LEGACY, MODERN, ORDINARY};

/// The task that a call of a tool submits.
#[derive(Clone)]
pub(crate) struct Makes {
    /// Who speaks to the server about it.
    pub(crate) driver: &'static str,
    /// The name of its toolset, or the raw name of the tool.
    pub(crate) task_name: Arc<str>,
    /// Whether it lives and dies with one session of the server (architecture.md §10, pinned tasks).
    pub(crate) is_pinned: bool,
    /// Which calls make it.
    pub(crate) offer: Offer,
}

impl Makes {
    /// What calls of this tool make. `facts` are what discovery learnt of the server; without any it is known by its
    /// toolsets only.
    pub(super) fn of(server: &ServerConfig, tool: &CatalogTool, facts: Option<&SessionFacts>) -> Option<Self> {
        let is_pinned = server.transport.owns_process();
        match exposure::role(server, &tool.raw_name) {
            Role::Submit(set) => {
                let task_name = set.name.as_str().into();
                Some(Self { driver: ORDINARY, task_name, is_pinned, offer: Offer::Always })
            }
            Role::Hidden => None,
            Role::Ordinary => {
                let facts = facts?;
                let offer = native::offer(server.native_tasks, facts.era, facts.capabilities.as_deref(), &tool.tool)?;
                let driver = match facts.era {
                    Era::Legacy => LEGACY,
                    Era::Modern => MODERN,
                };
                let fits = tool.raw_name.chars().count() <= MAX_TASK_NAME_CHARS;
                fits.then(|| Self { driver, task_name: tool.raw_name.clone(), is_pinned, offer })
            }
        }
    }

    /// Whether it is one of the protocol itself, of no toolset.
    pub(crate) fn is_native(&self) -> bool {
        self.driver != ORDINARY
    }

    /// Whether the server lets it be known that there are tasks.
    pub(super) fn is_announced(&self) -> bool {
        self.offer != (Offer::ServerDecides { is_announced: false })
    }
}
