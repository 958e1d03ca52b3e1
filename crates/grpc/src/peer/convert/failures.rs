//! Why a call has no result, as its session said it where it lives.

use std::sync::Arc;

use caribou_ports::guard::Exit;
use caribou_ports::mcp::{CallError, Disconnect};
use caribou_proto::peer::v1;
use caribou_proto::peer::v1::failed::Kind;
use serde_json::value::RawValue;

use super::sessions::json;

/// A failure, as a message.
pub(in crate::peer) fn failed(error: CallError) -> v1::Failed {
    let plain = |kind: Kind, detail| v1::Failed { kind: kind.into(), detail, ..Default::default() };
    match error {
        CallError::Rpc { code, message, data } => {
            let data = data.map(|data| data.get().to_owned());
            v1::Failed { code, data, ..plain(Kind::Rpc, message) }
        }
        CallError::Disconnected { disconnect: Disconnect { reason, exit, stderr }, sent } => {
            let mut failed = v1::Failed { sent, stderr, ..plain(Kind::Disconnected, reason) };
            match exit {
                Some(Exit::Code(code)) => failed.exit_code = Some(code),
                Some(Exit::Signal(signal)) => failed.exit_signal = Some(signal),
                Some(Exit::Lost) => failed.exit_lost = true,
                None => {}
            }
            failed
        }
        CallError::NotSent(detail) => plain(Kind::NotSent, detail),
        CallError::Busy(detail) => plain(Kind::Busy, detail),
        CallError::StreamEnded(detail) => plain(Kind::StreamEnded, detail),
        CallError::Denied(detail) => plain(Kind::Denied, detail),
        CallError::NotParked(detail) => plain(Kind::NotParked, detail),
        CallError::Malformed(detail) => plain(Kind::Malformed, detail),
        CallError::Unreadable(detail) => plain(Kind::Unreadable, detail),
        CallError::TooLarge { limit } => v1::Failed { limit: limit as u64, ..plain(Kind::TooLarge, String::new()) },
    }
}

/// The call was asked for again and is not known here.
pub(in crate::peer) fn unknown_call() -> v1::Failed {
    v1::Failed { kind: Kind::UnknownCall.into(), ..Default::default() }
}

/// The failure of a message; `None` = it is one of the way, not of the call.
pub(in crate::peer) fn call_error(failed: v1::Failed) -> Option<CallError> {
    let kind = failed.kind();
    let detail = failed.detail;
    Some(match kind {
        Kind::Rpc => {
            // Data that are no JSON are none.
            let data: Option<Arc<RawValue>> = failed.data.and_then(|data| json(data).ok()).map(Arc::from);
            CallError::Rpc { code: failed.code, message: detail, data }
        }
        Kind::Disconnected => {
            let code = failed.exit_code.map(Exit::Code);
            let exit = code.or(failed.exit_signal.map(Exit::Signal)).or(failed.exit_lost.then_some(Exit::Lost));
            let disconnect = Disconnect { reason: detail, exit, stderr: failed.stderr };
            CallError::Disconnected { disconnect, sent: failed.sent }
        }
        Kind::NotSent => CallError::NotSent(detail),
        Kind::StreamEnded => CallError::StreamEnded(detail),
        Kind::Denied => CallError::Denied(detail),
        Kind::NotParked => CallError::NotParked(detail),
        Kind::Malformed => CallError::Malformed(detail),
        Kind::Unreadable => CallError::Unreadable(detail),
        Kind::TooLarge => CallError::TooLarge { limit: usize::try_from(failed.limit).unwrap_or(usize::MAX) },
        Kind::Busy => CallError::Busy(detail),
        Kind::UnknownCall | Kind::NotTaken => return None,
        // A newer replica says something that we have no word for: whether the server was reached is unknown (S2).
        Kind::Unspecified => CallError::StreamEnded(detail),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_is_the_same_on_the_other_side() {
        let data = RawValue::from_string(r#"{"f":1.0}"#.to_owned()).unwrap();
        let ended = |exit| Disconnect { reason: "it ended".to_owned(), exit, stderr: "last words".to_owned() };
        let why = || "why".to_owned();
        for error in [
            CallError::Rpc { code: -32602, message: why(), data: Some(data.into()) },
            CallError::Rpc { code: 7, message: why(), data: None },
            CallError::Disconnected { disconnect: ended(Some(Exit::Code(0))), sent: true },
            CallError::Disconnected { disconnect: ended(Some(Exit::Signal(9))), sent: false },
            CallError::Disconnected { disconnect: ended(Some(Exit::Lost)), sent: true },
            CallError::Disconnected { disconnect: ended(None), sent: false },
            CallError::NotSent(why()),
            CallError::Busy(why()),
            CallError::StreamEnded(why()),
            CallError::Denied(why()),
            CallError::NotParked(why()),
            CallError::Malformed(why()),
            CallError::Unreadable(why()),
            CallError::TooLarge { limit: 17 },
        ] {
            let shown = format!("{error:?}");
            assert_eq!(format!("{:?}", call_error(failed(error)).unwrap()), shown);
        }
        assert!(call_error(unknown_call()).is_none());
    }
}
