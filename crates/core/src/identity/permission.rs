//! What a caller may do. Each refusal names what is missing, never what somebody else has.

use std::sync::Arc;

use super::Principal;
use crate::ids::UserId;

/// Why a caller may not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Only admins may.
    #[error("Admin privileges required to manage MCP configuration.")]
    NotAdmin,
    /// It asked for another user.
    #[error("only a caller with role `agent` may act for another user; leave `user_id` out or name your own")]
    OtherUser,
    /// It may not use that tool.
    #[error("this caller may not use tool `{0}`")]
    Tool(String),
    /// Its token lacks some of these OAuth scopes.
    #[error("the token must hold the scopes `{}` for this: ask its issuer for one that does", .0.join(" "))]
    Scopes(Arc<[String]>),
}

impl Principal {
    /// The user a request is made for: the caller itself when it names none.
    ///
    /// # Errors
    /// It names another one and is no agent.
    pub fn acts_for(&self, named: Option<&str>) -> Result<UserId, Refusal> {
        match named.filter(|named| !named.is_empty()) {
            None => Ok(self.user.clone()),
            Some(named) if self.roles.agent || named == self.user.as_str() => Ok(UserId::new(named)),
            Some(_) => Err(Refusal::OtherUser),
        }
    }

    /// Whether it may change the configuration and reset (contract 2.1).
    ///
    /// # Errors
    /// It is no admin.
    pub fn administers(&self) -> Result<(), Refusal> {
        if self.roles.admin { Ok(()) } else { Err(Refusal::NotAdmin) }
    }

    /// Whose tasks it may be told about: of the user it names, and of everybody if it names none and is an agent or an
    /// admin; `None` = everybody.
    ///
    /// # Errors
    /// It names another user and is neither.
    pub fn watches(&self, named: Option<&str>) -> Result<Option<UserId>, Refusal> {
        match named.filter(|named| !named.is_empty()) {
            None if self.roles.agent || self.roles.admin => Ok(None),
            Some(named) if self.roles.admin => Ok(Some(UserId::new(named))),
            named => self.acts_for(named).map(Some),
        }
    }

    /// Whether it may use the tool of this visible name.
    ///
    /// # Errors
    /// Its rules say no.
    pub fn uses(&self, visible_name: &str) -> Result<(), Refusal> {
        let covers = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, visible_name));
        let allowed = self.tools.allowed.as_deref().is_none_or(covers) && !covers(&self.tools.denied);
        if allowed { Ok(()) } else { Err(Refusal::Tool(visible_name.to_owned())) }
    }
}

/// Whether `name` is of the form of `pattern`, in which `*` stands for any characters, none included.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Roles, ToolRules};

    fn ann(roles: Roles, tools: ToolRules) -> Principal {
        Principal { user: UserId::new("ann"), roles, tools: tools.into(), ..Principal::local() }
    }

    #[test]
    fn nobody_but_an_agent_acts_for_another_user() {
        let user = ann(Roles::default(), ToolRules::default());
        assert_eq!(user.acts_for(None), Ok(UserId::new("ann")));
        assert_eq!(user.acts_for(Some("")), Ok(UserId::new("ann")));
        assert_eq!(user.acts_for(Some("bob")), Err(Refusal::OtherUser));
        let agent = ann(Roles { agent: true, admin: false }, ToolRules::default());
        assert_eq!(agent.acts_for(Some("bob")), Ok(UserId::new("bob")));
        assert_eq!(agent.administers(), Err(Refusal::NotAdmin));
    }

    #[test]
    fn only_agents_and_admins_are_told_about_the_tasks_of_others() {
        // Invariant P1.
        let user = ann(Roles::default(), ToolRules::default());
        assert_eq!(user.watches(None), Ok(Some(UserId::new("ann"))));
        assert_eq!(user.watches(Some("ann")), Ok(Some(UserId::new("ann"))));
        assert_eq!(user.watches(Some("bob")), Err(Refusal::OtherUser));
        for roles in [Roles { agent: true, admin: false }, Roles { agent: false, admin: true }] {
            let watcher = ann(roles, ToolRules::default());
            assert_eq!(watcher.watches(Some("")), Ok(None), "{roles:?}");
            assert_eq!(watcher.watches(Some("bob")), Ok(Some(UserId::new("bob"))), "{roles:?}");
        }
    }

    #[test]
    fn denied_wins_over_allowed_and_an_empty_list_allows_nothing() {
        let rules = |allowed: Option<&[&str]>, denied: &[&str]| {
            let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            ann(Roles::default(), ToolRules { allowed: allowed.map(own), denied: own(denied) })
        };
        assert!(rules(None, &[]).uses("memory_read").is_ok());
        assert!(rules(Some(&[]), &[]).uses("memory_read").is_err());
        assert!(rules(Some(&["memory_*"]), &[]).uses("memory_read").is_ok());
        assert!(rules(Some(&["memory_*"]), &["*_delete"]).uses("memory_delete").is_err());
        assert!(rules(Some(&["memory"]), &[]).uses("memory_read").is_err());
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, is_match) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "ac", true),
            ("a*a", "a", false),
            ("*b*", "abc", true),
            ("a*b*c", "axbxbc", true),
            ("a*b*c", "axc", false),
            ("abc", "abcd", false),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }
}
