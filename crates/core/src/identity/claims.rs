//! Which caller the claims of a verified token speak of (RFC 7519 §4).
//!
//! Whether the token may be believed is decided before; nothing of a claim's value is repeated in an error.

use std::sync::Arc;

use serde_json::Value;

use super::{HeldScopes, Principal, Role};
use crate::ids::{Scope, UserId};

/// Where in the claims what stands. A name is looked for as it is, then as a path with dots, such as
/// `realm_access.roles`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimNames {
    /// Whose value is the user.
    pub user: String,
    /// Whose value names roles: a list of words, or one text of words parted by blanks. Unknown words mean nothing.
    pub roles: String,
}

/// Why claims speak of nobody we know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimFault {
    /// The user's claim is missing, empty or no text.
    #[error("the token has no claim `{0}` that names a user")]
    NoUser(String),
    /// It cannot be a user of ours.
    #[error("the claim `{0}` of the token must have at most 256 bytes and no control characters")]
    OddUser(String),
}

impl ClaimNames {
    /// The caller.
    ///
    /// # Errors
    /// The claims name no user.
    pub fn principal(&self, claims: &Value) -> Result<Principal, ClaimFault> {
        let text = |name: &str| find(claims, name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let user = text(&self.user).ok_or_else(|| ClaimFault::NoUser(self.user.clone()))?;
        Scope::parse(Some(user), None).map_err(|_| ClaimFault::OddUser(self.user.clone()))?;
        let roles = match find(claims, &self.roles) {
            Some(Value::String(words)) => words.split(' ').filter_map(Role::parse).collect(),
            Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).filter_map(Role::parse).collect(),
            _ => [].into_iter().collect(),
        };
        let id = text("sub").filter(|subject| Scope::parse(Some(subject), None).is_ok()).unwrap_or(user);
        let scopes = HeldScopes::of_claims(claims);
        Ok(Principal { id: id.into(), user: UserId::new(user), roles, tools: Arc::default(), scopes })
    }
}

fn find<'c>(claims: &'c Value, name: &str) -> Option<&'c Value> {
    claims.get(name).or_else(|| name.split('.').try_fold(claims, |here, part| here.get(part)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::identity::Roles;

    fn names(user: &str, roles: &str) -> ClaimNames {
        ClaimNames { user: user.to_owned(), roles: roles.to_owned() }
    }

    #[test]
    fn user_and_roles_are_read_from_the_claims_named() {
        let claims = json!({"sub": "u-1", "email": "ann@example.org", "https://x.example/r": ["admin", "other", 7],
            "realm_access": {"roles": ["agent"]}, "scope": "openid admin agent", "roles": true});
        let read = |user: &str, roles: &str| names(user, roles).principal(&claims).unwrap();
        let caller = read("email", "https://x.example/r");
        assert_eq!((&*caller.id, caller.user.as_str()), ("u-1", "ann@example.org"));
        assert_eq!(caller.roles, Roles { admin: true, agent: false });
        assert_eq!(read("sub", "realm_access.roles").roles, Roles { admin: false, agent: true });
        let of_scopes = read("sub", "scope");
        assert_eq!(of_scopes.roles, Roles { admin: true, agent: true });
        assert!(matches!(of_scopes.scopes, HeldScopes::Only(held) if held.len() == 3));
        for none in ["roles", "absent", "realm_access", "sub"] {
            assert_eq!(read("sub", none).roles, Roles::default(), "{none}");
        }
    }

    #[test]
    fn claims_without_a_sane_user_are_nobody() {
        for odd in [json!({}), json!({"sub": ""}), json!({"sub": 7}), json!({"sub": ["ann"]}), json!([])] {
            assert_eq!(names("sub", "r").principal(&odd), Err(ClaimFault::NoUser("sub".to_owned())), "{odd}");
        }
        let odd = names("sub", "r").principal(&json!({"sub": "hunter2\n"})).unwrap_err();
        assert_eq!(odd, ClaimFault::OddUser("sub".to_owned()));
        assert!(!odd.to_string().contains("hunter2"));
    }
}
