//! Which programs may be started at all (contract 3.1, step 3).
//!
//! Owns the set and where it is extended; the shape of a name is checked before. Nothing can take `npx` or `uvx` out.

use std::collections::BTreeSet;

/// Ours first, then the name under which the contract knows it.
const VARIABLES: [&str; 2] = ["CARIBOU_MCP_STDIO_COMMAND_ALLOWLIST", "DEER_FLOW_MCP_STDIO_COMMAND_ALLOWLIST"];

/// The names of the programs that may be started, compared exactly. The default is `npx` and `uvx`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowlist(BTreeSet<String>);

impl Default for Allowlist {
    fn default() -> Self {
        Self::extended("")
    }
}

impl Allowlist {
    /// The default set and the names of `list`, separated by commas.
    pub fn extended(list: &str) -> Self {
        let further = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        Self(["npx", "uvx"].into_iter().chain(further).map(str::to_owned).collect())
    }

    /// The set as `CARIBOU_MCP_STDIO_COMMAND_ALLOWLIST` extends it, or `DEER_FLOW_MCP_STDIO_COMMAND_ALLOWLIST` where
    /// that is unset. `env` answers what a variable holds.
    pub fn from_env(env: &dyn Fn(&str) -> Option<String>) -> Self {
        Self::extended(&VARIABLES.into_iter().find_map(env).unwrap_or_default())
    }

    pub(super) fn allows(&self, command: &str) -> bool {
        self.0.contains(command)
    }

    /// All names, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_extends_the_set_and_never_replaces_it() {
        // Contract 3.1, step 3.
        let env = |name: &str| (name == VARIABLES[1]).then(|| " python, ,node,npx".to_owned());
        let allowlist = Allowlist::from_env(&env);
        assert_eq!(allowlist.names(), ["node", "npx", "python", "uvx"]);
        assert!(!allowlist.allows("Python") && !allowlist.allows(""), "names are compared exactly");
    }

    #[test]
    fn our_own_variable_wins_over_its_alias() {
        let env = |name: &str| Some(if name == VARIABLES[0] { "ours" } else { "alias" }.to_owned());
        assert_eq!(Allowlist::from_env(&env).names(), ["npx", "ours", "uvx"]);
        assert_eq!(Allowlist::from_env(&|_| None), Allowlist::default());
    }
}
