//! Variables that make a program run code before its own first line (contract 3.6).
//!
//! Owns the names, for every command. Names are compared without regard to case and surrounding spaces; values are
//! never looked at, since each of these has harmful ones. Variables that only lead a search (`NODE_PATH`,
//! `LD_LIBRARY_PATH`, `DYLD_LIBRARY_PATH`) are left alone on purpose.

const DENIED: [&str; 11] = [
    "BASH_ENV",
    "DYLD_INSERT_LIBRARIES",
    "ENV",
    "LD_AUDIT",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "PERL5OPT",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYOPT",
];

/// Options of npm that are code and that npm reads from variables too: name of the option and of the variable.
const DENIED_NPM: [(&str, &str); 3] = [
    ("call", "npm_config_call"),
    ("script-shell", "npm_config_script_shell"),
    ("node-options", "npm_config_node_options"),
];

/// The name, as we write it, under which `variable` makes a program run code.
pub(super) fn code(variable: &str) -> Option<&'static str> {
    let name = variable.trim().to_ascii_uppercase();
    let denied = DENIED.into_iter().find(|denied| *denied == name);
    denied.or_else(|| {
        let option = npm_option(variable)?;
        DENIED_NPM.into_iter().find(|(denied, _)| *denied == option).map(|(_, shown)| shown)
    })
}

/// The option of npm that `variable` sets. npm folds case, and underscores to dashes but for the first character.
pub(super) fn npm_option(variable: &str) -> Option<String> {
    let name = variable.trim().to_ascii_lowercase();
    let option = name.strip_prefix("npm_config_")?;
    let first = option.chars().next()?.len_utf8();
    Some(format!("{}{}", &option[..first], option[first..].replace('_', "-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_variables_is_found_in_any_case() {
        // Contract 3.6.
        for name in DENIED {
            assert_eq!(code(name), Some(name));
            assert_eq!(code(&format!(" {} ", name.to_lowercase())), Some(name));
        }
        for allowed in ["NODE_PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "API_KEY", "NODE_OPTIONS_X", "ENVIRONMENT"]
        {
            assert_eq!(code(allowed), None, "{allowed}");
        }
    }

    #[test]
    fn options_of_npm_are_found_in_every_spelling_npm_folds() {
        // Beyond contract 3.6: architecture.md §9, npx launch policy.
        for (name, shown) in [
            ("npm_config_call", "npm_config_call"),
            ("NPM_CONFIG_CALL", "npm_config_call"),
            ("npm_config_script_shell", "npm_config_script_shell"),
            ("NPM_config_Script-Shell", "npm_config_script_shell"),
            ("npm_config_node_options", "npm_config_node_options"),
            ("npm_config_node-options", "npm_config_node_options"),
        ] {
            assert_eq!(code(name), Some(shown), "{name}");
        }
        for allowed in ["npm_config_registry", "npm_config__call", "npm_config_", "npm_config_yes", "npm_call"] {
            assert_eq!(code(allowed), None, "{allowed}");
        }
    }
}
