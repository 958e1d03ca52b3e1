//! Whose events a receiver takes.

use crate::ids::UserId;

/// Whose events a receiver takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Those of everybody.
    Everybody,
    /// Those of these users only.
    Users(Vec<UserId>),
}

impl Audience {
    /// Whether events of `user` are among them (invariant P1).
    pub fn covers(&self, user: &UserId) -> bool {
        match self {
            Self::Everybody => true,
            Self::Users(users) => users.contains(user),
        }
    }

    /// Whoever one of both takes.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Users(mut users), Self::Users(others)) => {
                users.extend(others.iter().cloned());
                users.sort_unstable();
                users.dedup();
                Self::Users(users)
            }
            _ => Self::Everybody,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_for_its_own_user_and_for_whoever_takes_all() {
        // Invariant P1.
        let of = |names: &[&str]| Audience::Users(names.iter().map(|name| UserId::new(*name)).collect());
        let ann = UserId::new("ann");
        assert!(of(&["bob", "ann"]).covers(&ann) && !of(&["bob"]).covers(&ann) && !of(&[]).covers(&ann));
        assert!(Audience::Everybody.covers(&ann));
        assert_eq!(of(&["b"]).or(&of(&["a", "b"])), of(&["a", "b"]));
        assert_eq!(of(&["b"]).or(&Audience::Everybody), Audience::Everybody);
        assert_eq!(Audience::Everybody.or(&of(&["b"])), Audience::Everybody);
    }
}
