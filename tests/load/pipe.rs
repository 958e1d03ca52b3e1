//! The direct call over stdio: a child of ours, and several calls in flight on its two pipes.
//!
//! Owns the child and the matching of answers by id. One thread serves all calls in flight, since they share the pipe
//! anyway. A closed pipe, an unknown id or a silence longer than [`PATIENCE`] ends the run. Keeps no invariant.

use std::io::{Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::time::Instant;

use anyhow::{Context, ensure};
use caribou_core::era::Era;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::call::{INITIALIZED, initialize, is_echo, tools_call};
use crate::http1::PATIENCE;
use crate::sample::Samples;
use crate::started::Started;

/// Calls over one pair of pipes.
pub(crate) struct PipeCaller {
    stdin: ChildStdin,
    stdout: ChildStdout,
    /// The requests, one for each call in flight; the id is the place.
    requests: Vec<String>,
    /// Read, and not yet a whole line.
    unread: Vec<u8>,
    _child: Started,
}

impl PipeCaller {
    /// Starts a stdio echo, opens it, and calls once.
    ///
    /// # Errors
    /// The echo cannot be started or does not answer.
    pub(crate) fn start(era: Era, in_flight: usize) -> anyhow::Result<Self> {
        let (child, stdin, stdout) = Started::echo_stdio(era)?;
        let requests = (0..in_flight).map(|id| tools_call(era, "echo", id) + "\n").collect();
        let mut caller = Self { stdin, stdout, requests, unread: Vec::new(), _child: child };
        if era == Era::Legacy {
            let opening = [&initialize(), "\n", INITIALIZED, "\n"].concat();
            caller.stdin.write_all(opening.as_bytes()).context("opening the stdio echo")?;
            ensure!(caller.read_lines()?.len() == 1, "the stdio echo did not answer to initialize alone");
        }
        Ok(caller)
    }

    /// Calls until `end`, then waits for what is in flight.
    ///
    /// # Errors
    /// A pipe broke or an answer belongs to no call.
    pub(crate) fn run(&mut self, end: Instant) -> anyhow::Result<Samples> {
        let mut samples = Samples::default();
        let mut started = vec![Instant::now(); self.requests.len()];
        let mut in_flight = self.requests.len();
        self.stdin.write_all(self.requests.concat().as_bytes()).context("writing to the stdio echo")?;
        let mut next = String::new();
        while in_flight > 0 {
            next.clear();
            for line in self.read_lines()? {
                let now = Instant::now();
                let id = id_of(&line).filter(|id| *id < started.len()).with_context(|| format!("no id: {line}"))?;
                if is_echo(&line) {
                    samples.answered(now - started[id]);
                } else {
                    samples.failed(|| line);
                }
                if now < end {
                    started[id] = now;
                    next.push_str(&self.requests[id]);
                } else {
                    in_flight -= 1;
                }
            }
            self.stdin.write_all(next.as_bytes()).context("writing to the stdio echo")?;
        }
        Ok(samples)
    }

    /// At least one line: all that have arrived.
    fn read_lines(&mut self) -> anyhow::Result<Vec<String>> {
        let mut chunk = [0; 16 * 1024];
        while !self.unread.contains(&b'\n') {
            let patience = Timespec::try_from(PATIENCE).context("the patience")?;
            let ready = poll(&mut [PollFd::new(&self.stdout, PollFlags::IN)], Some(&patience)).context("waiting")?;
            ensure!(ready > 0, "the stdio echo was silent for {PATIENCE:?}");
            let count = self.stdout.read(&mut chunk).context("reading from the stdio echo")?;
            ensure!(count > 0, "the stdio echo closed its stdout");
            self.unread.extend_from_slice(&chunk[..count]);
        }
        let whole = self.unread.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let lines = self.unread.drain(..whole).collect();
        let lines = String::from_utf8(lines).context("an answer of the stdio echo")?;
        Ok(lines.lines().map(str::to_owned).collect())
    }
}

/// The number after the first `"id":`; our echo writes it before anything a caller controls.
fn id_of(line: &str) -> Option<usize> {
    let digits = line.split_once(r#""id":"#)?.1;
    digits[..digits.find(|c: char| !c.is_ascii_digit())?].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_matched_by_its_id() {
        assert_eq!(id_of(r#"{"jsonrpc":"2.0","id":63,"result":{"id":1}}"#), Some(63));
        assert_eq!(id_of(r#"{"jsonrpc":"2.0"}"#), None);
    }
}
