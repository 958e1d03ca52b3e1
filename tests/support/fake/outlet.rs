//! Where the answer to one request goes: the process's stdout, or one HTTP response.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::mpsc;

use super::script::{Framing, Ids, Status};

/// What a fake gives out.
#[derive(Debug)]
pub(super) enum Out {
    /// A JSON-RPC message.
    Message(String),
    /// Bytes as they are.
    Bytes(String),
    /// A plain HTTP answer.
    Status(Status),
    /// The stream stays open for a GET that resumes from this id.
    Resumable(String),
    /// The stream ends.
    End,
    /// The connection breaks.
    Reset,
}

/// One way out.
#[derive(Clone, Debug)]
pub(super) enum Outlet {
    /// The process's stdout; written before `put` returns.
    Stdout(Arc<Mutex<Framing>>),
    /// One HTTP response, or one standing stream.
    Http(mpsc::Sender<Out>),
}

impl Outlet {
    /// Gives something out. A peer that is gone takes nothing, which is no error of the fake.
    pub(super) async fn put(&self, out: Out) {
        match (self, out) {
            (Self::Http(sender), out) => drop(sender.send(out).await),
            (Self::Stdout(framing), Out::Message(text)) => {
                let mut framing = framing.lock().unwrap_or_else(PoisonError::into_inner);
                write(&framed(&framing, &text), framing.chunk);
                framing.bom = false;
            }
            (Self::Stdout(framing), Out::Bytes(text)) => {
                let _one_at_a_time = framing.lock().unwrap_or_else(PoisonError::into_inner);
                write(text.as_bytes(), 0);
            }
            (Self::Stdout(_), out) => panic!("{out:?} exists only over HTTP"),
        }
    }

    /// Resolves when nobody is there any more to take anything; never for stdout.
    pub(super) async fn gone(&self) {
        match self {
            Self::Http(sender) => sender.closed().await,
            Self::Stdout(_) => std::future::pending().await,
        }
    }
}

fn framed(framing: &Framing, message: &str) -> Vec<u8> {
    let end = if framing.crlf { "\r\n" } else { "\n" };
    let bom = if framing.bom { "\u{feff}" } else { "" };
    let line = format!("{}{end}", mangled(framing, message)).repeat(1 + usize::from(framing.twice));
    format!("{bom}{}{line}{}", framing.noise, framing.noise).into_bytes()
}

/// The message with its id and its wrapping as the script wants them.
pub(super) fn mangled(framing: &Framing, message: &str) -> String {
    if framing.ids == Ids::Kept && !framing.array {
        return message.to_owned();
    }
    let mut json: Value = serde_json::from_str(message).expect("the fake makes JSON");
    if json.get("id").is_none() || json.get("method").is_some() {
        return message.to_owned();
    }
    match framing.ids {
        Ids::Kept => {}
        Ids::Strings => json["id"] = Value::String(json["id"].to_string()),
        Ids::Zero => json["id"] = 0.into(),
    }
    if framing.array {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}"#;
        format!("[{note},{json}]")
    } else {
        json.to_string()
    }
}

fn write(bytes: &[u8], chunk: usize) {
    let mut stdout = std::io::stdout().lock();
    for part in bytes.chunks(if chunk == 0 { bytes.len().max(1) } else { chunk }) {
        // The reader may be gone: then nobody is left to tell.
        let _ = stdout.write_all(part).and_then(|()| stdout.flush());
    }
}
