//! For whom a request is made: user and thread as callers may write them.
//!
//! Whether the caller is that user is not decided here. A part that is absent or empty is `default` (contract 4.1).

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use caribou_core::ids::Scope;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::problem::Problem;

/// The longest thread id (contract 2.1).
const LONGEST_THREAD: usize = 64;

/// The longest user id in bytes. Ours: it stands in markers of child processes, in logs and in keys.
const LONGEST_USER: usize = 256;

/// The scope of these two.
///
/// # Errors
/// 422 when the thread is not `^[A-Za-z0-9_-]{1,64}$` (contract 2.1), or when the user is too long or holds a
/// control character, which could not stand in the environment of a child.
pub(crate) fn scope(user: Option<&str>, thread: Option<&str>) -> Result<Scope, Problem> {
    let sane_user = |user: &str| user.len() <= LONGEST_USER && !user.contains(char::is_control);
    if user.is_some_and(|user| !sane_user(user)) {
        return Err(Problem::invalid("`user_id` must have at most 256 bytes and no control characters"));
    }
    let sane_thread = |thread: &str| {
        thread.len() <= LONGEST_THREAD
            && thread.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    if thread.is_some_and(|thread| !sane_thread(thread)) {
        return Err(Problem::invalid("`thread_id` must match ^[A-Za-z0-9_-]{1,64}$"));
    }
    Ok(Scope::new(user, thread))
}

/// The parameters that name a scope. Any other is refused: a misspelt `thread_id` would mean another thread.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ScopeParameters {
    /// The user; absent or empty: `default`.
    #[param(max_length = 256, example = "ann")]
    user_id: Option<String>,
    /// The thread; absent or empty: `default`.
    #[param(pattern = "^[A-Za-z0-9_-]{0,64}$", example = "thread-1")]
    thread_id: Option<String>,
}

/// The scope that the query names.
pub(crate) struct QueriedScope(pub(crate) Scope);

impl<S: Sync> FromRequestParts<S> for QueriedScope {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Query(named) = Query::<ScopeParameters>::try_from_uri(&parts.uri).map_err(|_| {
            let detail = "the query may hold `user_id` and `thread_id`, each at most once and percent-encoded";
            Problem::invalid(detail)
        })?;
        scope(named.user_id.as_deref(), named.thread_id.as_deref()).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_and_empty_parts_are_default() {
        // Contract 4.1, scope.
        assert_eq!(scope(None, Some("")).unwrap().to_string(), "default:default");
        assert_eq!(scope(Some("ann@example.org"), Some("T-1_a")).unwrap().to_string(), "ann@example.org:T-1_a");
    }

    #[test]
    fn odd_threads_and_users_are_refused() {
        // Contract 2.1, `thread_id`.
        for thread in ["a b", "a/b", "a:b", "gr\u{fc}n", &"x".repeat(65)] {
            assert!(scope(None, Some(thread)).is_err(), "{thread}");
        }
        for user in ["a\0b", "a\nb", &"x".repeat(257)] {
            assert!(scope(Some(user), None).is_err(), "{user:?}");
        }
    }
}
