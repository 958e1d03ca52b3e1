//! How long a caller waits: the header `grpc-timeout` of the gRPC protocol over HTTP/2.

use std::time::Duration;

use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::status;

const GRPC_TIMEOUT: &str = "grpc-timeout";

/// The most digits of a timeout.
const MOST_DIGITS: usize = 8;

/// The bound that the caller sets, if it sets one.
///
/// # Errors
/// `INVALID_ARGUMENT`: the header is no timeout. Its value is not repeated.
pub(crate) fn of(metadata: &MetadataMap) -> Result<Option<Duration>, Status> {
    let Some(value) = metadata.get(GRPC_TIMEOUT) else { return Ok(None) };
    let bound = value.to_str().ok().and_then(parse);
    bound.map(Some).ok_or_else(|| status::invalid("`grpc-timeout` must be up to 8 digits and one of H, M, S, m, u, n"))
}

/// Waits for `work` as long as the caller does.
///
/// # Errors
/// Those of `work`; `DEADLINE_EXCEEDED` when it was not done in time.
pub(crate) async fn within<T>(
    bound: Option<Duration>,
    work: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match bound {
        Some(bound) => tokio::time::timeout(bound, work).await.unwrap_or_else(|_| Err(status::too_late())),
        None => work.await,
    }
}

fn parse(text: &str) -> Option<Duration> {
    let at = text.len().checked_sub(1)?;
    let (digits, unit) = text.split_at_checked(at)?;
    if !(1..=MOST_DIGITS).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_the_protocol_writes_them() {
        for (text, bound) in [
            ("1H", Some(Duration::from_secs(3_600))),
            ("2M", Some(Duration::from_secs(120))),
            ("99999999S", Some(Duration::from_secs(99_999_999))),
            ("500m", Some(Duration::from_millis(500))),
            ("0n", Some(Duration::ZERO)),
            ("7u", Some(Duration::from_micros(7))),
            ("", None),
            ("S", None),
            ("1", None),
            ("+1S", None),
            ("123456789S", None),
            ("1s", None),
            ("1\u{fc}", None),
        ] {
            assert_eq!(parse(text), bound, "{text}");
        }
    }
}
