//! Server-sent events: bytes in, events out (WHATWG HTML, "Parsing an event stream").
//!
//! Owns line ends (LF, CRLF, CR, mixed, split anywhere between chunks), the byte-order mark, fields and their
//! joining. Does not own what an event means, nor reading from the network. Data stays bytes: a line is only ever cut
//! at ASCII line ends, so no character is torn, and bad UTF-8 stays the business of the one message it stands in.
//! An event above the cap is the only failure; the parser is of no use after it. Keeps B1 and W1.

use std::collections::VecDeque;
use std::time::Duration;

/// A byte-order mark, allowed once, at the very start.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// One dispatched event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its type; empty for `message`, named or not.
    pub(crate) name: String,
    /// Its data lines, joined with LF.
    pub(crate) data: Vec<u8>,
}

impl Event {
    /// Whether it carries a message, rather than being of a type that MCP gives no meaning to, or a priming event
    /// that carries only an id (SEP-1699).
    pub(crate) fn is_message(&self) -> bool {
        self.name.is_empty() && !self.data.is_empty()
    }
}

/// An event grew beyond the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
pub(crate) struct EventTooLarge {
    /// The cap in bytes.
    pub(crate) limit: usize,
}

/// Takes an event stream apart, chunk by chunk.
#[derive(Debug)]
pub(crate) struct SseParser {
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    /// The event under construction; `None` before its first `data` line.
    data: Option<Vec<u8>>,
    name: String,
    last_id: String,
    retry: Option<Duration>,
    ready: VecDeque<Event>,
    limit: usize,
    at_start: bool,
    /// The last byte was a CR that ended a line: an LF right after it belongs to the same line end.
    after_cr: bool,
}

impl SseParser {
    /// A parser that refuses events of more than `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            data: None,
            name: String::new(),
            last_id: String::new(),
            retry: None,
            ready: VecDeque::new(),
            limit,
            at_start: true,
            after_cr: false,
        }
    }

    /// Takes the next bytes of the stream. Events that became complete are then waiting in [`SseParser::next`].
    ///
    /// # Errors
    /// The event under construction exceeds the cap. Events complete before it can still be taken.
    pub(crate) fn push(&mut self, mut chunk: &[u8]) -> Result<(), EventTooLarge> {
        while let Some(&first) = chunk.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let Some(end) = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.admit(chunk.len())?;
                self.line.extend_from_slice(chunk);
                return Ok(());
            };
            self.admit(end)?;
            self.after_cr = chunk[end] == b'\r';
            if self.line.is_empty() {
                self.end_line(&chunk[..end]);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&chunk[..end]);
                self.end_line(&line);
                line.clear();
                self.line = line;
            }
            chunk = &chunk[end + 1..];
        }
        Ok(())
    }

    /// The next complete event.
    pub(crate) fn next(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    /// Begins anew with the bytes of another answer, keeping the last id and the pause; half an event is dropped.
    pub(crate) fn restart(&mut self) {
        let (last_id, retry) = (std::mem::take(&mut self.last_id), self.retry);
        *self = Self { last_id, retry, ..Self::new(self.limit) };
    }

    /// The last event id seen; what a resumed stream names. `None` if none was sent, or it was reset.
    pub(crate) fn last_id(&self) -> Option<&str> {
        (!self.last_id.is_empty()).then_some(self.last_id.as_str())
    }

    /// How long the server wants to be left alone before a reconnect.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn admit(&self, more: usize) -> Result<(), EventTooLarge> {
        let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if held + more > self.limit { Err(EventTooLarge { limit: self.limit }) } else { Ok(()) }
    }

    fn end_line(&mut self, line: &[u8]) {
        let line = match std::mem::take(&mut self.at_start) {
            true => line.strip_prefix(BOM).unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = match line.iter().position(|&byte| byte == b':') {
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        self.field(field, value);
    }

    fn field(&mut self, field: &[u8], value: &[u8]) {
        match field {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"event" if value == b"message" => self.name.clear(),
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => self.last_id = String::from_utf8_lossy(value).into_owned(),
            b"retry" => self.retry = milliseconds(value).or(self.retry),
            // Comments have an empty field name; unknown fields are ignored by rule.
            _ => {}
        }
    }

    fn dispatch(&mut self) {
        let name = std::mem::take(&mut self.name);
        if let Some(data) = self.data.take() {
            self.ready.push_back(Event { name, data });
        }
    }
}

fn milliseconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WORD: &str = "caf\u{e9} \u{1f98a} end";

    fn events(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = SseParser::new(1 << 20);
        let mut seen = Vec::new();
        for chunk in chunks {
            parser.push(chunk).unwrap();
            while let Some(event) = parser.next() {
                seen.push((event.name, String::from_utf8(event.data).unwrap()));
            }
        }
        seen
    }

    fn one(data: &str) -> Vec<(String, String)> {
        vec![(String::new(), data.to_owned())]
    }

    #[test]
    fn every_kind_of_line_end_ends_a_line() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("event: message{end}data: {WORD}{end}{end}");
            assert_eq!(events(&[text.as_bytes()]), one(WORD), "{end:?}");
        }
        assert_eq!(events(&[b"event: message\r\ndata: x\r\n\n"]), one("x"));
    }

    #[test]
    fn a_cr_and_its_lf_in_different_chunks_are_one_line_end() {
        assert_eq!(events(&[b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n"]), one("a\nb"));
    }

    #[test]
    fn an_event_that_ends_in_cr_is_told_at_once() {
        assert_eq!(events(&[b"data: a\r\r"]), one("a"));
    }

    #[test]
    fn data_lines_are_joined_and_one_space_after_the_colon_goes() {
        assert_eq!(events(&[b"data:{\ndata:  \"a\":1\ndata\ndata: }\n\n"]), one("{\n \"a\":1\n\n}"));
    }

    #[test]
    fn a_byte_order_mark_goes_only_at_the_start() {
        assert_eq!(events(&[b"\xef\xbb", b"\xbfdata: x\n\n"]), one("x"));
        assert_eq!(events(&[b"\n\xef\xbb\xbfdata: x\n\n"]), []);
    }

    #[test]
    fn comments_unknown_fields_and_empty_events_are_ignored() {
        assert_eq!(events(&[b": hi\nfoo: bar\njustaname\n\n\nevent: x\n\ndata: y\n\n"]), one("y"));
    }

    #[test]
    fn ids_and_retry_are_kept_across_events_and_bad_ones_ignored() {
        let mut parser = SseParser::new(64);
        parser.push(b"id: e-1\nretry: 100\ndata:\n\nid: a\0b\nretry: 1s\n\n").unwrap();
        let event = parser.next().unwrap();
        assert!(event.data.is_empty() && !event.is_message());
        assert_eq!((parser.last_id(), parser.retry()), (Some("e-1"), Some(Duration::from_millis(100))));
        parser.push(b"data: half").unwrap();
        parser.restart();
        assert_eq!((parser.last_id(), parser.retry()), (Some("e-1"), Some(Duration::from_millis(100))));
        parser.push(b"id\n\n").unwrap();
        assert_eq!(parser.last_id(), None);
        assert_eq!(parser.next(), None);
    }

    #[test]
    fn an_event_above_the_cap_is_refused_however_it_is_cut() {
        let mut whole = SseParser::new(16);
        assert_eq!(whole.push(b"data: 0123456789abcdef\n\n"), Err(EventTooLarge { limit: 16 }));
        let mut lines = SseParser::new(16);
        assert_eq!(lines.push(b"data: 01234567\ndata: 01234567\n\n"), Err(EventTooLarge { limit: 16 }));
        let mut drops = SseParser::new(16);
        assert!((0..17).any(|_| drops.push(b"x").is_err()));
    }

    #[test]
    fn an_unfinished_event_is_never_told() {
        assert_eq!(events(&[b"data: half\n"]), []);
    }

    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            "data: x",
            "data:",
            "data: \u{1f98a}",
            "event: e",
            "id: 1",
            ": c",
            "\u{feff}",
            "\n",
            "\r",
            "\r\n",
            "\n\n",
        ]);
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(stream in streams(), cuts in prop::collection::vec(0usize..400, 0..20)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.push(0);
            cuts.push(stream.len());
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            let expected = events(&[&stream]);
            prop_assert_eq!(&events(&chunks), &expected);
            prop_assert_eq!(&events(&bytes), &expected);
        }
    }
}
