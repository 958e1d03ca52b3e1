//! Settings on the servers that users bring for themselves, and on whether other instances share what is stored
//! (contract 7.7).

use caribou_core::bounds::MAX_PERSONAL_CONNECTIONS;
use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The path of [`Deployment::multi_instance`].
pub(super) const MULTI_INSTANCE: &str = "deployment.multi_instance";

/// Its variables; the first one that says something counts.
const VARIABLES: [&str; 2] = ["CARIBOU_DEPLOYMENT_MULTI_INSTANCE", "DEER_FLOW_MULTI_INSTANCE"];

/// Words that mean no; every other word means yes.
const NO: [&str; 4] = ["0", "false", "no", "off"];

/// Personal connections: servers that users bring for themselves. They need a database, and the key that encrypts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Personal {
    /// How many one user may have. 0: nobody may add any.
    #[garde(range(max = 1_000))]
    #[schemars(range(max = 1_000))]
    pub max_per_user: u32,
    /// Whether users may bring servers that are started here as child processes, of the programs on the list of
    /// commands. Otherwise only remote ones.
    #[garde(skip)]
    pub allow_stdio: bool,
}

/// How Caribou is deployed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Deployment {
    /// Whether several instances share one database. Then CARIBOU_CREDENTIALS_KEY must be set, the same for all: an
    /// instance does not make a key of its own. As an environment variable, also as DEER_FLOW_MULTI_INSTANCE, any word
    /// but 0, false, no and off means yes.
    #[garde(skip)]
    pub multi_instance: bool,
}

impl Default for Personal {
    fn default() -> Self {
        Self { max_per_user: MAX_PERSONAL_CONNECTIONS, allow_stdio: false }
    }
}

/// What the environment says about several instances; `None` = nothing.
pub(super) fn multi_instance(env: &dyn Fn(&str) -> Option<String>) -> Option<bool> {
    let said = VARIABLES.iter().filter_map(|name| env(name)).find(|text| !text.trim().is_empty())?;
    Some(!NO.contains(&said.trim().to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_but_the_falsy_ones_means_several_instances() {
        // Contract 7.7, multi-instance.
        let said = |own: Option<&str>, alias: Option<&str>| {
            multi_instance(&|name: &str| {
                let text = if name == VARIABLES[0] { own } else { alias };
                text.map(str::to_owned)
            })
        };
        for yes in ["1", "true", "yes", "on", "anything"] {
            assert_eq!((said(Some(yes), None), said(None, Some(yes))), (Some(true), Some(true)), "{yes}");
        }
        for no in ["0", "false", "No", " OFF "] {
            assert_eq!((said(Some(no), Some("1")), said(None, Some(no))), (Some(false), Some(false)), "{no}");
        }
        assert_eq!((said(None, None), said(Some(""), Some(" "))), (None, None));
        assert_eq!(said(Some(""), Some("1")), Some(true));
    }
}
