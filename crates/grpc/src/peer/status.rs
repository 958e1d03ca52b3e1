//! Statuses between replicas, both ways: what is refused, and why a call has no result.
//!
//! Whatever a replica refuses has not reached a server, and the trailer `refusal-bin` says why. A status without it was
//! made on the way, so nobody can tell what became of the request. Texts are for people and hold no secret.

use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::session::NotTaken;
use caribou_ports::peers::PeerError;
use caribou_proto::peer::v1;
use caribou_proto::peer::v1::refusal::Why;
use prost::Message as _;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code as Grpc, Status};

/// The trailer that holds a [`v1::Refusal`].
const REFUSAL: &str = "refusal-bin";

/// Marks a status of our own for a request that never left this process.
const NEVER_SENT: &str = "caribou-never-sent";

/// The longest detail, so that a refusal fits into the 8 KiB of headers that common libraries take.
const LONGEST_DETAIL: usize = 1_536;

/// Why a request was not taken, as a message.
pub(super) fn not_taken(why: NotTaken) -> v1::Refusal {
    let reason = match why {
        NotTaken::TooManyHops => Why::TooManyHops,
        NotTaken::NotOwner => Why::NotOwner,
        NotTaken::WrongEpoch => Why::WrongEpoch,
        NotTaken::Fenced => Why::Fenced,
        NotTaken::Draining => Why::Draining,
        NotTaken::WrongBoot => Why::WrongBoot,
    };
    v1::Refusal { why: reason.into(), detail: why.to_string(), ..Default::default() }
}

/// The status of a request for a session that has none.
pub(super) fn refused(error: PeerError) -> Status {
    let (grpc, refusal) = match error {
        // Whoever asks may look the session up again at once.
        PeerError::NotTaken(why @ NotTaken::Fenced) => (Grpc::Unavailable, not_taken(why)),
        PeerError::NotTaken(why) => (Grpc::FailedPrecondition, not_taken(why)),
        PeerError::Unreachable(detail) => (Grpc::Unavailable, not_opened(Code::Unavailable, detail, None)),
        PeerError::Failed { code, detail, retry_after } => (grpc_code(code), not_opened(code, detail, retry_after)),
    };
    with(grpc, &refusal)
}

/// A request that is no request.
pub(super) fn malformed(detail: &str) -> Status {
    with(Grpc::InvalidArgument, &not_opened(Code::Invalid, detail.to_owned(), None))
}

/// Whoever asks is no member of the cluster.
pub(super) fn stranger() -> Status {
    let detail = "this is no member of the cluster: `cluster.secret` must be the same on every replica";
    with(Grpc::Unauthenticated, &not_opened(Code::Denied, detail.to_owned(), None))
}

/// A request that never left this process.
pub(super) fn never_sent(why: impl std::fmt::Display) -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert(NEVER_SENT, MetadataValue::from_static("1"));
    Status::with_metadata(Grpc::Unavailable, why.to_string(), metadata)
}

/// Whether the request surely never left this process.
pub(super) fn is_never_sent(status: &Status) -> bool {
    status.metadata().contains_key(NEVER_SENT)
}

/// What the other replica refused; `None` = the status was made on the way.
pub(super) fn refusal_of(status: &Status) -> Option<PeerError> {
    refusal(status).map(of_refusal)
}

/// What a status says of a session that was asked for.
pub(super) fn peer_error(status: &Status) -> PeerError {
    refusal_of(status).unwrap_or_else(|| PeerError::Unreachable(told(status)))
}

/// What a refusal means.
pub(super) fn of_refusal(refusal: v1::Refusal) -> PeerError {
    PeerError::NotTaken(match refusal.why() {
        Why::TooManyHops => NotTaken::TooManyHops,
        // A reason that we do not know is one to look again.
        Why::NotOwner | Why::Unspecified => NotTaken::NotOwner,
        Why::WrongEpoch => NotTaken::WrongEpoch,
        Why::Fenced => NotTaken::Fenced,
        Why::Draining => NotTaken::Draining,
        Why::WrongBoot => NotTaken::WrongBoot,
        Why::NotOpened => {
            let retry_after = (refusal.retry_after_ms > 0).then(|| Duration::from_millis(refusal.retry_after_ms));
            let code = Code::ALL.into_iter().find(|code| code.as_str() == refusal.code);
            return PeerError::Failed { code: code.unwrap_or(Code::Unavailable), detail: refusal.detail, retry_after };
        }
    })
}

/// A status in words.
pub(super) fn told(status: &Status) -> String {
    match status.message() {
        "" => format!("gRPC status {:?}", status.code()),
        message => message.to_owned(),
    }
}

fn refusal(status: &Status) -> Option<v1::Refusal> {
    let bytes = status.metadata().get_bin(REFUSAL)?.to_bytes().ok()?;
    v1::Refusal::decode(bytes).ok()
}

fn not_opened(code: Code, detail: String, retry_after: Option<Duration>) -> v1::Refusal {
    let retry_after_ms = retry_after.map_or(0, |wait| wait.as_millis().max(1) as u64);
    v1::Refusal { why: Why::NotOpened.into(), code: code.as_str().to_owned(), detail, retry_after_ms }
}

fn with(grpc: Grpc, refusal: &v1::Refusal) -> Status {
    let refusal = v1::Refusal { detail: cut(&refusal.detail), ..refusal.clone() };
    let mut metadata = MetadataMap::new();
    metadata.insert_bin(REFUSAL, MetadataValue::from_bytes(&refusal.encode_to_vec()));
    Status::with_metadata(grpc, refusal.detail, metadata)
}

fn cut(detail: &str) -> String {
    match detail.len() <= LONGEST_DETAIL {
        true => detail.to_owned(),
        false => format!("{} ... (cut)", &detail[..detail.floor_char_boundary(LONGEST_DETAIL)]),
    }
}

/// What people see in their tools; replicas read the refusal.
fn grpc_code(code: Code) -> Grpc {
    match code {
        Code::Busy => Grpc::ResourceExhausted,
        Code::Timeout => Grpc::DeadlineExceeded,
        Code::Denied => Grpc::PermissionDenied,
        Code::NotFound => Grpc::NotFound,
        Code::Unavailable | Code::SessionEnded => Grpc::Unavailable,
        Code::Invalid | Code::Conflict | Code::ConfigChanged | Code::OutcomeUnknown | Code::UpstreamError => {
            Grpc::Aborted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [NotTaken; 6] = [
        NotTaken::TooManyHops,
        NotTaken::NotOwner,
        NotTaken::WrongEpoch,
        NotTaken::Fenced,
        NotTaken::Draining,
        NotTaken::WrongBoot,
    ];

    #[test]
    fn every_refusal_is_understood_on_the_other_side() {
        for why in ALL {
            let status = refused(why.into());
            assert!(matches!(peer_error(&status), PeerError::NotTaken(back) if back == why), "{why}");
        }
        for code in Code::ALL {
            let failed =
                PeerError::Failed { code, detail: "why".to_owned(), retry_after: Some(Duration::from_secs(2)) };
            let PeerError::Failed { code: back, detail, retry_after } = peer_error(&refused(failed)) else {
                panic!("{code}")
            };
            assert_eq!((back, &*detail, retry_after), (code, "why", Some(Duration::from_secs(2))));
        }
    }

    #[test]
    fn a_status_of_the_way_says_nothing_of_what_was_done() {
        // Invariant S2.
        let broken = Status::unavailable("reset");
        assert!(refusal_of(&broken).is_none() && !is_never_sent(&broken) && is_never_sent(&never_sent("closed")));
        assert!(matches!(peer_error(&broken), PeerError::Unreachable(why) if why == "reset"));
    }

    #[test]
    fn a_long_detail_is_cut_to_fit_into_headers() {
        let detail = "\u{fc}".repeat(5_000);
        let PeerError::Failed { detail, .. } =
            peer_error(&refused(PeerError::Failed { code: Code::Busy, detail, retry_after: None }))
        else {
            panic!("it is taken")
        };
        assert!(detail.len() < 2_000 && detail.ends_with("(cut)"));
    }
}
