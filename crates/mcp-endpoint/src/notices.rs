//! What a running request tells its client: progress and log messages, as far as they are wanted (mcp.md §8).
//!
//! They queue up to a bound and are dropped beyond it: they are a courtesy, and a session must not wait for a slow
//! client (invariant B1).

use std::sync::Arc;

use caribou_core::bounds::PROGRESS_QUEUE;
use caribou_core::raw::{Members, text};
use caribou_runtime::{Progress, ProgressSink};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::asking::request;
use crate::fault::Fault;
use crate::message::notification;
use crate::meta::Level;

/// Which log messages a client wants with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// None.
    No,
    /// All: it never said.
    All,
    /// Those that are at least as grave.
    From(Level),
}

/// The way from a request to its client.
#[derive(Clone)]
pub(crate) struct Notices {
    queue: mpsc::Sender<String>,
    /// The client's token: JSON text.
    token: Option<Arc<str>>,
    wanted: Wanted,
}

impl Notices {
    /// With the end that the client's stream reads.
    pub(crate) fn new(token: Option<&str>, wanted: Wanted) -> (Self, mpsc::Receiver<String>) {
        let (queue, heard) = mpsc::channel(PROGRESS_QUEUE);
        (Self { queue, token: token.map(Into::into), wanted }, heard)
    }

    /// Where the runtime reports to; `None` = nobody listens.
    pub(crate) fn sink(&self) -> Option<ProgressSink> {
        if self.token.is_none() && self.wanted == Wanted::No {
            return None;
        }
        let notices = self.clone();
        Some(Arc::new(move |report| {
            if let Some(text) = notices.text(&report) {
                let _ = notices.queue.try_send(text);
            }
        }))
    }

    /// Asks the client `question` under this id (JSON text). Waits for room: a question is no courtesy.
    ///
    /// # Errors
    /// It is none, or nobody reads the stream.
    pub(crate) async fn ask(&self, id: &str, question: &RawValue) -> Result<(), Fault> {
        let request =
            request(id, question).ok_or_else(|| Fault::not_answered("the server asks something unreadable"))?;
        let sent = self.queue.send(request).await;
        sent.map_err(|_| Fault::not_answered("the client reads no stream that it could be asked on"))
    }

    /// Whether somebody reads the stream.
    pub(crate) fn is_heard(&self) -> bool {
        !self.queue.is_closed()
    }

    /// Resolves when nobody reads the stream any more.
    pub(crate) async fn unheard(&self) {
        self.queue.closed().await;
    }

    fn text(&self, report: &Progress) -> Option<String> {
        match report {
            Progress::Progress(params) => {
                let token = self.token.as_deref()?;
                let rest = params.get().trim_start().strip_prefix('{')?;
                let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
                let params = format!("{{\"progressToken\":{token}{comma}{rest}");
                Some(notification("notifications/progress", &params))
            }
            Progress::Message(params) => {
                let is_wanted = match self.wanted {
                    Wanted::No => false,
                    Wanted::All => true,
                    Wanted::From(least) => level(params).is_none_or(|level| level >= least),
                };
                is_wanted.then(|| notification("notifications/message", params.get()))
            }
        }
    }
}

fn level(params: &RawValue) -> Option<Level> {
    Level::parse(&text(Members::of(params)?.get("level")?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Arc<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap().into()
    }

    #[test]
    fn progress_has_the_clients_own_token_and_is_otherwise_as_it_came() {
        let (notices, _) = Notices::new(Some("\"mine\""), Wanted::No);
        let told = notices.text(&Progress::Progress(raw(r#"{"progress":1.0,"total":2}"#))).unwrap();
        assert!(told.ends_with(r#""params":{"progressToken":"mine","progress":1.0,"total":2}}"#), "{told}");
        let (silent, _) = Notices::new(None, Wanted::No);
        assert!(silent.text(&Progress::Progress(raw("{}"))).is_none() && silent.sink().is_none());
    }

    #[test]
    fn log_messages_are_told_from_the_level_that_was_asked_for() {
        // mcp.md §17, S17.
        let told = |wanted| {
            let (notices, _) = Notices::new(None, wanted);
            notices.text(&Progress::Message(raw(r#"{"level":"info","data":1}"#))).is_some()
        };
        assert!(told(Wanted::All) && told(Wanted::From(Level::Info)));
        assert!(!told(Wanted::No) && !told(Wanted::From(Level::Warning)));
    }
}
