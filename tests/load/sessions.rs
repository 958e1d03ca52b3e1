//! What an idle session costs.
//!
//! Owns the opening of many sessions, one call each. A session that cannot be opened ends the run. Keeps no invariant.

use anyhow::anyhow;
use serde::Serialize;

use crate::call::{HttpCaller, opened};
use crate::http1::Connection;
use crate::proc::{Resident, resident};
use crate::started::Caribou;

/// Sessions opened before the first reading: what the first ones need is code and pools, not state.
const FIRST: usize = 8;

/// Memory before and after some sessions were opened.
#[derive(Debug, Serialize)]
pub(crate) struct Sessions {
    /// How many.
    pub(crate) opened: usize,
    before: Resident,
    after: Resident,
}

impl Sessions {
    /// What each needs in Caribou's own process, in KiB.
    pub(crate) fn caribou_kib_each(&self) -> f64 {
        self.each(|resident| resident.caribou_kib)
    }

    /// What each needs in the guard, in KiB.
    pub(crate) fn guard_kib_each(&self) -> f64 {
        self.each(|resident| resident.guard_kib)
    }

    /// What each needs in a child of its own, in KiB.
    pub(crate) fn child_kib_each(&self) -> f64 {
        self.each(|resident| resident.children_kib)
    }

    /// What all of them need in Caribou's own process, in KiB.
    pub(crate) fn caribou_kib(&self) -> f64 {
        self.caribou_kib_each() * self.opened as f64
    }

    fn each(&self, part: impl Fn(&Resident) -> u64) -> f64 {
        (part(&self.after) as f64 - part(&self.before) as f64) / self.opened as f64
    }
}

/// Opens `count` sessions by calling `tool` in as many threads of conversation.
///
/// # Errors
/// A call failed.
pub(crate) fn open(caribou: &Caribou, tool: &str, count: usize) -> anyhow::Result<Sessions> {
    eprintln!("{count} sessions of {tool}");
    call_in_threads(caribou, tool, 0..FIRST)?;
    let before = resident(caribou.pid())?;
    call_in_threads(caribou, tool, FIRST..FIRST + count)?;
    Ok(Sessions { opened: count, before, after: resident(caribou.pid())? })
}

/// Opens `count` sessions of clients at Caribou's MCP endpoint, which call nothing.
///
/// # Errors
/// One is not opened.
pub(crate) fn open_clients(caribou: &Caribou, count: usize) -> anyhow::Result<Sessions> {
    eprintln!("{count} sessions of MCP clients");
    let mut connection = Connection::open(caribou.address)?;
    let mut open = |count| (0..count).try_for_each(|_| opened(&mut connection, caribou.address).map(drop));
    open(FIRST)?;
    let before = resident(caribou.pid())?;
    open(count)?;
    Ok(Sessions { opened: count, before, after: resident(caribou.pid())? })
}

fn call_in_threads(caribou: &Caribou, tool: &str, threads: std::ops::Range<usize>) -> anyhow::Result<()> {
    for thread in threads {
        let mut caller = HttpCaller::through(caribou.address, tool, &format!("idle-{thread}"))?;
        caller.call()?.map_err(|answer| anyhow!("session {thread} was answered with {answer}"))?;
    }
    Ok(())
}
