//! The credential of a user on a server of many (contract 8.4).
//!
//! Owns who has one. Somebody who named no user is nobody in particular, and never inherits what is configured for a
//! user. An illegal value denies its user whatever `on_missing` says (contract 8.3).

use super::Denied;
use crate::config::{OnMissing, Secret, UserAuth};
use crate::headers;
use crate::ids::{DEFAULT_SCOPE_PART, ServerName, UserId};

/// The header that `auth` adds for this user; `None` where the call goes on with the static headers.
pub(super) fn header(server: &ServerName, auth: &UserAuth, user: &UserId) -> Result<Option<(String, Secret)>, Denied> {
    if !auth.enabled {
        return Ok(None);
    }
    let is_nobody = user.as_str() == DEFAULT_SCOPE_PART;
    let mapped = auth.users.iter().find(|(name, _)| !is_nobody && name == user.as_str());
    let value = match mapped.map(|(_, value)| headers::legal(&auth.header, value.expose())) {
        None => "",
        Some(Ok(value)) => value,
        Some(Err(reason)) => {
            return Err(Denied::IllegalCredential { server: server.to_string(), user: user.to_string(), reason });
        }
    };
    match (value, auth.on_missing) {
        ("", OnMissing::Deny) => Err(Denied::NoCredential { server: server.to_string(), user: user.to_string() }),
        ("", OnMissing::Passthrough) => Ok(None),
        (value, _) => Ok(Some((auth.header.clone(), Secret::new(value)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(on_missing: OnMissing, user: &str) -> Result<Option<(String, String)>, String> {
        let users = [("ann", "Bearer a\n"), ("unset", ""), ("default", "Bearer d"), ("bad", "tok\nX-Evil: 1")];
        let auth = UserAuth {
            enabled: true,
            header: "X-Key".to_owned(),
            users: users.map(|(user, value)| (user.to_owned(), Secret::new(value))).into(),
            on_missing,
        };
        header(&ServerName::from("s"), &auth, &UserId::from(user))
            .map(|header| header.map(|(name, value)| (name, value.expose().to_owned())))
            .map_err(|denied| denied.to_string())
    }

    #[test]
    fn a_mapped_user_gets_its_value_and_nobody_else_gets_any() {
        // Contract 8.4: mapped; unmapped, empty and default-user fallback.
        let own = Ok(Some(("X-Key".to_owned(), "Bearer a".to_owned())));
        assert_eq!(asked(OnMissing::Deny, "ann"), own);
        assert_eq!(asked(OnMissing::Passthrough, "ann"), own);
        for user in ["bob", "unset", "default", "Ann"] {
            let denied = asked(OnMissing::Deny, user).unwrap_err();
            assert!(denied.starts_with("No credential is configured "), "{denied}");
            assert!(denied.contains(&format!("`{user}`")), "{denied}");
            assert_eq!(asked(OnMissing::Passthrough, user), Ok(None));
        }
    }

    #[test]
    fn an_illegal_value_denies_whatever_is_missing() {
        // Contract 8.3, 8.4.
        for on_missing in [OnMissing::Deny, OnMissing::Passthrough] {
            let denied = asked(on_missing, "bad").unwrap_err();
            assert!(denied.contains("`bad`") && denied.contains("`s`") && !denied.contains("tok"), "{denied}");
        }
    }

    #[test]
    fn a_block_that_is_switched_off_adds_nothing_and_denies_nobody() {
        // Contract 8.4, block disabled.
        let auth = UserAuth {
            enabled: false,
            header: "Authorization".to_owned(),
            users: Vec::new(),
            on_missing: OnMissing::Deny,
        };
        assert_eq!(header(&ServerName::from("s"), &auth, &UserId::from("ann")), Ok(None));
    }
}
