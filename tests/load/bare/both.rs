//! Both processes of bare calls, and what they cost.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::time::Duration;

use anyhow::Context;

use crate::proc::cpu_below;
use crate::started::Started;

/// Callers of one process and the server of another.
pub(crate) struct Bare {
    server: Started,
    callers: Started,
    /// How long to call, in milliseconds, a line each.
    orders: ChildStdin,
    /// How many calls were answered, a line each.
    counts: BufReader<ChildStdout>,
}

impl Bare {
    /// So many callers, who do not call yet; `None` = this program is not optimised.
    ///
    /// # Errors
    /// This program cannot be started again.
    pub(crate) fn start(in_flight: u16) -> anyhow::Result<Option<Self>> {
        if cfg!(debug_assertions) {
            return Ok(None);
        }
        let (server, address) = Started::listening_as("bare-server")?;
        let (callers, orders, counts) =
            Started::piped(&["bare-callers", &address.to_string(), &in_flight.to_string()])?;
        Ok(Some(Self { server, callers, orders, counts: BufReader::new(counts) }))
    }

    /// Calls for so long: how many calls were answered, and the CPU time of both processes.
    ///
    /// # Errors
    /// One of them is gone.
    pub(crate) fn run(&mut self, length: Duration) -> anyhow::Result<(u64, Duration)> {
        let used = self.cpu()?;
        writeln!(self.orders, "{}", length.as_millis()).context("ordering bare calls")?;
        let mut count = String::new();
        self.counts.read_line(&mut count).context("counting bare calls")?;
        let calls = count.trim_end().parse().with_context(|| format!("no count of bare calls: {count:?}"))?;
        Ok((calls, self.cpu()? - used))
    }

    fn cpu(&self) -> anyhow::Result<Duration> {
        Ok(cpu_below(self.server.pid())? + cpu_below(self.callers.pid())?)
    }
}
