//! A tiny HTTP/1.1 client: one kept-alive connection, one exchange at a time.
//!
//! Owns as much of HTTP as a generator needs that must be far cheaper than what it measures: two system calls and no
//! allocation a call. No chunked bodies, no redirects, no TLS: an answer outside that is an error, and so is one that
//! takes longer than [`PATIENCE`]. Keeps B1: an answer may have [`LONGEST`] bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

/// The longest wait for one answer: a bring-up of 60 s (contract 1.2) may stand before a first call.
pub(crate) const PATIENCE: Duration = Duration::from_secs(70);

/// The longest answer.
const LONGEST: usize = 16 * 1024 * 1024;

/// One connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// One answer, borrowed from its connection.
pub(crate) struct Answer<'c> {
    /// The status code.
    pub(crate) status: u16,
    head: &'c str,
    /// The body.
    pub(crate) body: &'c str,
}

impl Answer<'_> {
    /// The value of a header, its name in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens there.
    pub(crate) fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream =
            TcpStream::connect_timeout(&address, PATIENCE).with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, buffer: vec![0; 16 * 1024] })
    }

    /// Sends `request`, a whole HTTP request, and reads the answer to it.
    ///
    /// # Errors
    /// The connection broke, or the answer is outside the HTTP spoken here. The connection is then of no more use.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.stream.write_all(request).context("sending a request")?;
        let mut filled = 0;
        let head_end = loop {
            let seen = filled;
            filled += self.read_more(filled)?;
            // The blank line may straddle two reads.
            let from = seen.saturating_sub(3);
            if let Some(at) = self.buffer[from..filled].windows(4).position(|window| window == b"\r\n\r\n") {
                break from + at;
            }
        };
        let body_start = head_end + 4;
        let head = std::str::from_utf8(&self.buffer[..head_end]).context("the head of an answer")?;
        let status = head.get(9..12).and_then(|code| code.parse().ok()).context("an answer without a status")?;
        let end = body_start + body_length(status, head)?;
        ensure!(end <= LONGEST, "an answer of {end} bytes");
        while filled < end {
            filled += self.read_more(filled)?;
        }
        ensure!(filled == end, "more bytes than the answer has");
        let head = std::str::from_utf8(&self.buffer[..head_end]).context("the head of an answer")?;
        let body = std::str::from_utf8(&self.buffer[body_start..end]).context("the body of an answer")?;
        Ok(Answer { status, head, body })
    }

    fn read_more(&mut self, filled: usize) -> anyhow::Result<usize> {
        if filled == self.buffer.len() {
            ensure!(filled < LONGEST, "an answer of more than {LONGEST} bytes");
            self.buffer.resize(filled * 2, 0);
        }
        let count = self.stream.read(&mut self.buffer[filled..]).context("waiting for an answer")?;
        ensure!(count > 0, "the connection was closed before the answer ended");
        Ok(count)
    }
}

fn body_length(status: u16, head: &str) -> anyhow::Result<usize> {
    match header(head, "content-length") {
        Some(length) => length.parse().context("a content-length that is no number"),
        None if status == 202 || status == 204 => Ok(0),
        None => bail!("an answer without content-length"),
    }
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.split("\r\n").skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// A POST of JSON, as one kept-alive request.
pub(crate) fn post(address: SocketAddr, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.extend([name, ": ", value, "\r\n"]);
    }
    request.extend(["\r\n", body]);
    request.into_bytes()
}

/// A GET.
pub(crate) fn get(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\naccept: application/json\r\n");
    for (name, value) in headers {
        request.extend([name, ": ", value, "\r\n"]);
    }
    request.push_str("\r\n");
    request.into_bytes()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Serves one connection: reads once before each part, then writes it.
    fn server(parts: &'static [&'static str]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = [0; 1024];
            for part in parts {
                assert!(stream.read(&mut request).expect("a request") > 0);
                stream.write_all(part.as_bytes()).expect("a reader");
            }
        });
        address
    }

    #[test]
    fn answers_of_one_connection_are_told_apart() {
        let address = server(&[
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nMcp-Session-Id:  s1 \r\n\r\nhi",
            "HTTP/1.1 202 Accepted\r\n\r\n",
        ]);
        let mut connection = Connection::open(address).expect("a connection");
        let answer = connection.exchange(&get(address, "/", &[])).expect("an answer");
        assert_eq!((answer.status, answer.body, answer.header("mcp-session-id")), (200, "hi", Some("s1")));
        let answer = connection.exchange(&post(address, "/", &[("x", "y")], "{}")).expect("an answer");
        assert_eq!((answer.status, answer.body), (202, ""));
    }

    #[test]
    fn an_answer_cut_short_is_an_error() {
        let address = server(&["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi"]);
        let mut connection = Connection::open(address).expect("a connection");
        assert!(connection.exchange(&get(address, "/", &[])).is_err());
    }
}
