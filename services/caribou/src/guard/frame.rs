//! The words main and guard exchange, one JSON text a packet.
//!
//! Owns their shape and size; not how they travel (`socket`). Nothing here derives `Debug`: an order carries
//! arguments and environment, which may be secrets (invariant O3).

use std::path::PathBuf;

use caribou_ports::guard::Exit;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The largest order: arguments and environment of one child. Linux allows 128 KiB for a single string, and a
/// packet must fit into the send buffer of the socket.
pub(super) const MAX_ORDER_BYTES: usize = 128 * 1024;

/// The largest report; the only long part is the name of a program.
pub(super) const MAX_REPORT_BYTES: usize = 4 * 1024;

/// Environment of a child: which life of which replica started it.
pub(super) const MARK_BOOT: &str = "CARIBOU_BOOT";

/// Environment of a child: whose it is, for people who look at processes.
pub(super) const MARK_SESSION: &str = "CARIBOU_SESSION";

/// Environment of a child: its number, by which its escaped descendants are found.
pub(super) const MARK_CHILD: &str = "CARIBOU_CHILD";

/// A child of this boot. Numbers are never used twice, also not by the next guard.
pub(super) type ChildId = u64;

/// What main orders.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// Start a child on the three descriptors that travel along.
    Spawn(Spawn),
    /// Signal everything that belongs to a child.
    Kill {
        /// Which.
        child: ChildId,
        /// How.
        ending: Ending,
    },
    /// Hold the descriptor that travels along, the lock of this life, until nothing of the guard is left.
    Hold,
    /// How long the guard may let children live (invariant L1).
    Trust {
        /// Milliseconds of the boot-time clock; `None` = for ever, as long as main lives.
        until_ms: Option<u64>,
    },
}

/// One child to start.
#[derive(Serialize, Deserialize)]
pub(super) struct Spawn {
    /// Its number.
    pub(super) child: ChildId,
    /// Whose it is.
    pub(super) session: String,
    /// Program and arguments.
    pub(super) argv: Vec<String>,
    /// Its whole environment, the marks excepted.
    pub(super) env: Vec<(String, String)>,
    /// Its working directory; `None` = the guard's.
    pub(super) cwd: Option<PathBuf>,
}

/// How a child is ended. Ordered by severity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ending {
    /// SIGTERM: it may clean up.
    Ask,
    /// SIGKILL, again for whatever appears while it dies.
    Kill,
}

/// What the guard reports.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// The child runs.
    Started {
        /// Which.
        child: ChildId,
        /// Leader, group and session.
        pid: u32,
    },
    /// The child was not started.
    Refused {
        /// Which.
        child: ChildId,
        /// Why.
        why: Refusal,
    },
    /// The leader exited and was reaped.
    Exited {
        /// Which.
        child: ChildId,
        /// How.
        exit: Exit,
    },
    /// Nothing of the child is alive. Also the answer to `Kill` for a number the guard does not know.
    Gone {
        /// Which.
        child: ChildId,
    },
}

/// Why a child was not started.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Refusal {
    /// The launch itself is wrong.
    NotStartable(String),
    /// The machine has no room, or the guard may not start children now.
    Unavailable(String),
}

/// The bytes of a frame.
pub(super) fn encode(frame: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(frame)
}

/// The frame in these bytes.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(bytes)
}
