//! Lines of a byte stream, with a bound on one that never ends.
//!
//! Owns framing of stdio (mcp.md §3.5) and its forgivable variants: a byte-order mark at the start, CRLF, blank lines,
//! a last line without a line end. Complete lines before a fault are delivered before the fault is. Keeps one buffer
//! that grows with the longest line and shrinks again, so that an idle session costs little.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The buffer of an idle reader.
const IDLE_BYTES: usize = 8 * 1024;

/// A buffer that grew beyond this is given back once it is empty.
const KEPT_BYTES: usize = 256 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads lines.
pub(crate) struct LineReader<R> {
    input: R,
    buffer: Vec<u8>,
    /// Start of what was not delivered yet.
    start: usize,
    /// No line end lies before this.
    searched: usize,
    limit: usize,
    at_start: bool,
    at_end: bool,
}

/// Why there are no more lines.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    /// A line is longer than the bound.
    #[error(
        "a message on stdout is longer than {0} bytes; raise `max_tool_result_bytes` of this server to let it pass"
    )]
    TooLong(usize),
    /// The stream broke.
    #[error("stdout cannot be read: {0}")]
    Broken(#[from] io::Error),
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads `input`; a line of more than `limit` bytes is an error.
    pub(crate) fn new(input: R, limit: usize) -> Self {
        let buffer = Vec::with_capacity(IDLE_BYTES);
        Self { input, buffer, start: 0, searched: 0, limit, at_start: true, at_end: false }
    }

    /// The next line that is not blank, without its line end; `None` at the end of the stream, where a last line
    /// without a line end may be [left](Self::rest).
    ///
    /// # Errors
    /// A line passed the bound or the stream broke. Every complete line before it was delivered.
    pub(crate) async fn next(&mut self) -> Result<Option<&[u8]>, LineError> {
        loop {
            let Some((from, to)) = self.complete_line()? else {
                if self.at_end {
                    return Ok(None);
                }
                self.fill().await?;
                continue;
            };
            let (from, to) = self.trimmed(from, to);
            if from < to {
                return Ok(Some(&self.buffer[from..to]));
            }
        }
    }

    /// What came after the last line end, if it is not blank; to be asked for at the end of the stream.
    pub(crate) fn rest(&mut self) -> Option<&[u8]> {
        let (from, to) = self.trimmed(self.start, self.buffer.len());
        (from < to).then(|| &self.buffer[from..to])
    }

    /// The bounds of the next line in the buffer, line end excluded; steps over it.
    fn complete_line(&mut self) -> Result<Option<(usize, usize)>, LineError> {
        let from = self.start;
        let found = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n');
        let to = match found {
            Some(offset) => self.searched + offset,
            None => self.buffer.len(),
        };
        if to - from > self.limit {
            return Err(LineError::TooLong(self.limit));
        }
        if found.is_some() {
            self.start = to + 1;
            self.searched = self.start;
            return Ok(Some((from, to)));
        }
        self.searched = to;
        Ok(None)
    }

    /// Without a byte-order mark at the very start, and without blanks at the edges, which a JSON text may have.
    fn trimmed(&mut self, mut from: usize, to: usize) -> (usize, usize) {
        if std::mem::take(&mut self.at_start) && self.buffer[from..to].starts_with(BYTE_ORDER_MARK) {
            from += BYTE_ORDER_MARK.len();
        }
        let line = &self.buffer[from..to];
        let leading = line.len() - line.trim_ascii_start().len();
        (from + leading, from + leading + line.trim_ascii().len())
    }

    /// Reads more, after what was delivered has made room.
    async fn fill(&mut self) -> Result<(), LineError> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_BYTES);
        } else if self.start > 0 {
            self.buffer.drain(..self.start);
        }
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.capacity() == self.buffer.len() {
            self.buffer.reserve(IDLE_BYTES);
        }
        self.at_end = self.input.read_buf(&mut self.buffer).await? == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lines of `text`, read `step` bytes at a time, and the error at the end.
    async fn lines(text: &[u8], limit: usize, step: usize) -> (Vec<String>, Option<LineError>) {
        let (mut writer, reader) = tokio::io::duplex(step);
        let text = text.to_vec();
        tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut writer, &text).await });
        let mut reader = LineReader::new(reader, limit);
        let mut lines = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(line)) => lines.push(String::from_utf8_lossy(line).into_owned()),
                Ok(None) => {
                    lines.extend(reader.rest().map(|line| String::from_utf8_lossy(line).into_owned()));
                    return (lines, None);
                }
                Err(error) => return (lines, Some(error)),
            }
        }
    }

    #[tokio::test]
    async fn a_mark_crlf_blank_lines_and_a_missing_last_line_end_are_accepted() {
        for step in [1, 3, 4_096] {
            let (lines, error) = lines(b"\xef\xbb\xbf{\"a\":1}\r\n\r\n\n  \n two \nlast", 100, step).await;
            assert_eq!(lines, ["{\"a\":1}", "two", "last"], "read {step} bytes at a time");
            assert!(error.is_none());
        }
    }

    #[tokio::test]
    async fn lines_before_an_endless_one_are_delivered_first() {
        let mut text = b"one\ntwo\n".to_vec();
        text.extend([b'x'; 50_000]);
        let (lines, error) = lines(&text, 1_000, 4_096).await;
        assert_eq!(lines, ["one", "two"]);
        assert!(matches!(error, Some(LineError::TooLong(1_000))));
    }

    #[tokio::test]
    async fn a_line_of_exactly_the_bound_passes_and_one_byte_more_does_not() {
        assert_eq!(lines(b"12345\n1234\n", 5, 64).await.0, ["12345", "1234"]);
        assert!(lines(b"123456\n", 5, 64).await.1.is_some());
    }

    #[tokio::test]
    async fn a_long_line_arrives_whole_and_its_buffer_is_given_back() {
        let long = "y".repeat(1_000_000);
        let (mut writer, reader) = tokio::io::duplex(64 * 1024);
        let text = format!("{long}\nshort\n");
        let writing =
            tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut writer, text.as_bytes()).await });
        let mut reader = LineReader::new(reader, 2_000_000);
        assert_eq!(reader.next().await.expect("read").map(<[u8]>::len), Some(1_000_000));
        assert_eq!(reader.next().await.expect("read"), Some(&b"short"[..]));
        assert_eq!(reader.next().await.expect("read"), None);
        writing.await.expect("joined").expect("written");
        assert!(reader.buffer.capacity() <= KEPT_BYTES);
    }
}
