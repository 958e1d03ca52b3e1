//! Who calls: the metadatum `authorization`, judged as over REST.

use caribou_core::bounds::MAX_BEARER_BYTES;
use caribou_core::config::Secret;
use caribou_core::failure::Code;
use caribou_core::ids::{RequestId, Scope};
use caribou_proto::v1;
use caribou_runtime::{Caller, Door, NotAdmitted, Runtime, Unauthenticated, VerbError};
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::status;

const AUTHORIZATION: &str = "authorization";

/// A credential that was put where none belongs: metadata are kept and shown (contract 2.4).
const MISPLACED: &str = "auth_token";

/// The caller that this metadata names, in the name of the request `id`.
///
/// # Errors
/// It names none, or one that may not come in.
pub(crate) async fn caller(runtime: &Runtime, metadata: &MetadataMap, id: &RequestId) -> Result<Caller, Status> {
    if metadata.contains_key(MISPLACED) {
        return Err(status::invalid("metadata may not hold `auth_token`: put it into `secrets`"));
    }
    let presented = if runtime.tells_callers_apart() { bearer(metadata)? } else { None };
    match runtime.admit(presented).await {
        Ok(principal) => Ok(Caller { principal, door: Door::Grpc, request_id: Some(id.clone()) }),
        Err(refused) => Err(not_admitted(refused)),
    }
}

/// The credential of the scheme `Bearer`, which is written in any case (RFC 6750 §2.1, RFC 9110 §11.1).
///
/// # Errors
/// There is something else, or more than one.
fn bearer(metadata: &MetadataMap) -> Result<Option<Secret>, Status> {
    let mut lines = metadata.get_all(AUTHORIZATION).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    let malformed = || status::unauthenticated("`authorization` must be one metadatum of the form `Bearer ...`");
    let text = line.to_str().ok().filter(|text| text.len() <= MAX_BEARER_BYTES).ok_or_else(malformed)?;
    let (scheme, credential) = text.split_once(' ').ok_or_else(malformed)?;
    let credential = credential.trim_matches(' ');
    if lines.next().is_some() || !scheme.eq_ignore_ascii_case("bearer") || credential.is_empty() {
        return Err(malformed());
    }
    Ok(Some(Secret::new(credential)))
}

fn not_admitted(refused: NotAdmitted) -> Status {
    let detail = refused.to_string();
    match refused {
        NotAdmitted::Unauthenticated(Unauthenticated::Unavailable(_)) => {
            status::of(VerbError::new(Code::Unavailable, detail))
        }
        NotAdmitted::Unauthenticated(Unauthenticated::Missing | Unauthenticated::Refused(_)) => {
            status::unauthenticated(detail)
        }
        NotAdmitted::Limited { retry_after } => {
            status::of(VerbError { retry_after: Some(retry_after), ..VerbError::new(Code::Busy, detail) })
        }
    }
}

/// For whom the caller asks: itself unless it names another user.
///
/// # Errors
/// A part is malformed, or the caller may not act for that user.
pub(crate) fn scope(caller: &Caller, named: Option<&v1::Scope>) -> Result<Scope, Status> {
    let (user, thread) = named.map_or((None, None), |scope| (Some(&*scope.user_id), Some(&*scope.thread_id)));
    caller.scope(user, thread).map_err(status::of)
}

#[cfg(test)]
mod tests {
    use caribou_core::identity::{Principal, Roles};
    use caribou_core::ids::UserId;

    use super::*;

    fn named(user: &str, thread: &str) -> v1::Scope {
        v1::Scope { user_id: user.to_owned(), thread_id: thread.to_owned() }
    }

    fn read(lines: &[&'static str]) -> Result<Option<String>, Status> {
        let mut metadata = MetadataMap::new();
        for line in lines {
            metadata.append(AUTHORIZATION, line.parse().unwrap());
        }
        bearer(&metadata).map(|found| found.map(|secret| secret.expose().to_owned()))
    }

    #[test]
    fn a_credential_is_read_whatever_the_case_of_its_scheme() {
        assert_eq!(read(&[]).unwrap(), None);
        for line in ["Bearer abc", "bearer abc", "BEARER  abc "] {
            assert_eq!(read(&[line]).unwrap().as_deref(), Some("abc"), "{line}");
        }
    }

    #[test]
    fn what_is_no_single_bearer_credential_is_refused_without_being_repeated() {
        for lines in [&["Basic hunter2"][..], &["hunter2"], &["Bearer "], &["Bearer hunter2", "Bearer b"]] {
            let refused = read(lines).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::Unauthenticated, "{lines:?}");
            assert!(!format!("{refused:?}").contains("hunter2"), "{lines:?}");
        }
    }

    #[test]
    fn a_refusal_tells_whether_another_credential_or_another_time_helps() {
        let code = |refused| not_admitted(refused).code();
        let stranger = |why| code(NotAdmitted::Unauthenticated(why));
        assert_eq!(stranger(Unauthenticated::Missing), tonic::Code::Unauthenticated);
        assert_eq!(stranger(Unauthenticated::Refused("expired".to_owned())), tonic::Code::Unauthenticated);
        assert_eq!(stranger(Unauthenticated::Unavailable("no keys".to_owned())), tonic::Code::Unavailable);
        let limited = not_admitted(NotAdmitted::Limited { retry_after: std::time::Duration::from_secs(3) });
        assert_eq!(limited.code(), tonic::Code::ResourceExhausted);
        assert_eq!(limited.metadata().get("retry-after").unwrap(), "3");
    }

    #[test]
    fn a_caller_acts_for_itself_and_only_an_agent_for_others() {
        // Invariant P1.
        let ann = Principal { user: UserId::new("ann"), roles: Roles::default(), ..Principal::local() };
        let caller = Caller { principal: ann, ..Caller::local(Door::Grpc) };
        assert_eq!(scope(&caller, None).unwrap().to_string(), "ann:default");
        assert_eq!(scope(&caller, Some(&named("ann", "t1"))).unwrap().to_string(), "ann:t1");
        assert_eq!(scope(&caller, Some(&named("bob", ""))).unwrap_err().code(), tonic::Code::PermissionDenied);
        assert_eq!(scope(&caller, Some(&named("", "a b"))).unwrap_err().code(), tonic::Code::InvalidArgument);
        let agent = Caller::local(Door::Grpc);
        assert_eq!(scope(&agent, Some(&named("bob", ""))).unwrap().to_string(), "bob:default");
    }
}
