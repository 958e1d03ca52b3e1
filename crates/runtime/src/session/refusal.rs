//! What a caller is told when there is no session for its call.

use std::time::Duration;

use caribou_core::config::ServerConfig;
use caribou_core::failure::Code;

use super::handle::NotOpened;
use super::router::Router;
use crate::error::VerbError;

impl Router {
    pub(crate) fn refusal(&self, server: &ServerConfig, why: NotOpened) -> VerbError {
        let name = &server.name;
        match why {
            NotOpened::Failed(error) => {
                VerbError::new(error.code(), format!("server `{name}` could not be opened: {error}"))
            }
            NotOpened::BackingOff { last, retry_after } => VerbError {
                retry_after: Some(retry_after),
                ..VerbError::new(
                    last.code(),
                    format!(
                        "server `{name}` failed several times in a row and is tried again in {:.0} s; the last \
                         failure: {last}",
                        retry_after.as_secs_f64().ceil()
                    ),
                )
            },
            NotOpened::Busy => VerbError {
                retry_after: Some(Duration::from_secs(1)),
                ..VerbError::new(
                    Code::Busy,
                    format!(
                        "this session of server `{name}` has {} calls in flight already; try again, or raise \
                         `sessions.max_calls_per_session`",
                        self.options.max_calls_per_session
                    ),
                )
            },
            NotOpened::NoRoom { limit } => VerbError {
                retry_after: Some(Duration::from_secs(1)),
                ..VerbError::new(
                    Code::Busy,
                    format!(
                        "no session with server `{name}`: all {limit} are in use and none fell idle in time; try \
                         again later, or raise `sessions.max_live`"
                    ),
                )
            },
            NotOpened::Superseded => VerbError::new(
                Code::ConfigChanged,
                format!("configuration changed: server `{name}` is another one now; look its tools up again"),
            ),
            NotOpened::There { code, detail, retry_after } => VerbError { retry_after, ..VerbError::new(code, detail) },
            NotOpened::Moved => VerbError {
                retry_after: Some(Duration::from_secs(1)),
                ..VerbError::new(
                    Code::Unavailable,
                    format!(
                        "this session of server `{name}` moves from one replica to another, or the replica that holds \
                         it cannot be reached; try again"
                    ),
                )
            },
            NotOpened::Untrusted(why) => {
                VerbError { retry_after: Some(Duration::from_secs(1)), ..VerbError::new(Code::Unavailable, why) }
            }
            NotOpened::TooLate(bound) => VerbError::new(
                Code::Timeout,
                format!("server `{name}` was not opened within {} s", bound.as_secs_f64()),
            ),
            NotOpened::KeepsEnding => {
                VerbError::new(Code::SessionEnded, format!("sessions with server `{name}` keep ending"))
            }
            NotOpened::Stopping => VerbError::new(Code::Unavailable, "this replica is stopping"),
        }
    }
}
