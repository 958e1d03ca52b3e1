//! The echo over stdin and stdout.
//!
//! Owns nothing but the two pipes. Answers that wait together are written together, as a good server does. It leaves
//! when either pipe closes; a broken stdout is how a client goes away and no error. Keeps no invariant.

use std::io::{self, BufRead, BufReader, BufWriter, Write};

use anyhow::Context;
use caribou_core::era::Era;

use super::{Answer, answer};

/// Serves until stdin closes.
///
/// # Errors
/// Stdin cannot be read, or holds something that is not UTF-8.
pub(crate) fn serve_stdio(era: Era) -> anyhow::Result<()> {
    let mut input = BufReader::with_capacity(64 * 1024, io::stdin().lock());
    let mut output = BufWriter::with_capacity(64 * 1024, io::stdout().lock());
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line).context("reading stdin")? == 0 {
            return Ok(());
        }
        let written = match answer(era, 1, &line) {
            Answer::Silence => Ok(()),
            Answer::Opened(text) | Answer::Result(text) | Answer::Refused(text) => writeln!(output, "{text}"),
        };
        let more_waits = input.buffer().contains(&b'\n');
        let flushed = if more_waits { Ok(()) } else { output.flush() };
        if written.and(flushed).is_err() {
            return Ok(());
        }
    }
}
