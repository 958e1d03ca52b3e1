//! One caller who has proved who it is.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::HeldScopes;
use crate::ids::{DEFAULT_SCOPE_PART, UserId};

/// What a caller may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// May change the configuration and reset.
    Admin,
    /// May act for any user.
    Agent,
    /// Acts for itself only.
    User,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Admin, Self::Agent, Self::User];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Agent => "agent",
            Self::User => "user",
        }
    }

    /// The role of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// The roles of one caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// Whether it may change the configuration and reset.
    pub admin: bool,
    /// Whether it may act for any user.
    pub agent: bool,
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        let mut all = Self::default();
        for role in roles {
            match role {
                Role::Admin => all.admin = true,
                Role::Agent => all.agent = true,
                Role::User => {}
            }
        }
        all
    }
}

/// Which tools a caller may use: patterns over visible names, `*` for any characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRules {
    /// `None` = all, empty = none.
    pub allowed: Option<Vec<String>>,
    /// Wins over `allowed`.
    pub denied: Vec<String>,
}

/// A caller. Cheap to clone; holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Names it in audit rows, logs and rate limits: the id of a key, the subject of a token, `local`.
    pub id: Arc<str>,
    /// The user it is.
    pub user: UserId,
    /// What else it is.
    pub roles: Roles,
    /// Which tools it may use.
    pub tools: Arc<ToolRules>,
    /// Which OAuth scopes it holds.
    pub scopes: HeldScopes,
}

impl Principal {
    /// Whoever calls while identity is off, which loopback only can: may everything.
    pub fn local() -> Self {
        Self {
            id: "local".into(),
            user: UserId::new(DEFAULT_SCOPE_PART),
            roles: Roles { admin: true, agent: true },
            tools: Arc::default(),
            scopes: HeldScopes::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_is_read_from_its_word_and_from_no_other() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
        }
        for word in ["Admin", "admin ", "", "root"] {
            assert_eq!(Role::parse(word), None);
        }
        let roles: Roles = [Role::User, Role::Admin].into_iter().collect();
        assert_eq!(roles, Roles { admin: true, agent: false });
    }
}
