//! The events of one call as a replica of ours streams them: `progress`, `message`, then `result` or `error`.
//!
//! Reads only what Caribou writes (one `event` and one `data` line each, `:` comments between), and bounds what is
//! kept of an unfinished line.

use anyhow::{Context as _, bail};
use axum::body::Body;
use caribou_core::bounds;
use futures::StreamExt as _;

/// A result may be as large as a message, and is wrapped in a little more.
const MAX_LINE_BYTES: usize = 2 * bounds::MAX_MESSAGE_BYTES;

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) struct Event {
    pub(in crate::commands) name: String,
    pub(in crate::commands) data: String,
}

/// Hands each event to `take` until it says that it has what it wants.
///
/// # Errors
/// When the stream breaks off before that, or holds a line beyond the bound.
pub(in crate::commands) async fn read<T>(body: Body, mut take: impl FnMut(Event) -> Option<T>) -> anyhow::Result<T> {
    let mut chunks = body.into_data_stream();
    let mut line = Vec::new();
    let mut name = String::new();
    while let Some(chunk) = chunks.next().await {
        for piece in chunk.context("the answer broke off")?.split_inclusive(|&byte| byte == b'\n') {
            line.extend_from_slice(piece);
            if line.len() > MAX_LINE_BYTES {
                bail!("the answer is too large");
            }
            if piece.ends_with(b"\n") {
                let wanted = event(&String::from_utf8_lossy(&line), &mut name).and_then(&mut take);
                if let Some(wanted) = wanted {
                    return Ok(wanted);
                }
                line.clear();
            }
        }
    }
    bail!("the answer ended before the result")
}

/// The event that this line completes; a line that names one is kept in `name`.
fn event(line: &str, name: &mut String) -> Option<Event> {
    let line = line.trim_end();
    if let Some(value) = line.strip_prefix("event:") {
        value.trim_start().clone_into(name);
    }
    let data = line.strip_prefix("data:")?.trim_start().to_owned();
    Some(Event { name: std::mem::take(name), data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_are_read_whatever_their_chunks() {
        let chunks = ["event: pro", "gress\ndata: {\"progress\":1}\n\n: still here\n\nevent: result\nda", "ta: {}\n\n"];
        let body = Body::from_stream(futures::stream::iter(chunks.map(Ok::<_, std::io::Error>)));
        let mut seen = Vec::new();
        let last = read(body, |event| {
            seen.push((event.name.clone(), event.data.clone()));
            (event.name == "result").then_some(event.data)
        });
        assert_eq!(last.await.unwrap(), "{}");
        assert_eq!(seen[0], ("progress".to_owned(), "{\"progress\":1}".to_owned()));
    }

    #[tokio::test]
    async fn a_stream_that_ends_without_a_result_is_an_error() {
        read(Body::from("event: progress\ndata: {}\n\n"), |_| None::<()>).await.unwrap_err();
    }
}
