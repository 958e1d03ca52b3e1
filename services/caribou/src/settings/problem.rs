//! One thing that is wrong with our own settings, wherever it was said.
//!
//! Reads like a problem of the servers' configuration, but its source may be a variable or a flag, which have no
//! lines. Holds names and positions, never a value (invariant O3).

use std::fmt;

use caribou_core::config::Severity;
use serde::Serialize;

/// One problem. `Display` is one line: `source:line:column: error: path: what; mend`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Always an error: a setting is right or it is not.
    pub severity: Severity,
    /// The file, the environment variable or the flag.
    pub file: String,
    /// The line of a file, from 1.
    pub line: Option<usize>,
    /// The column of a file, from 1.
    pub column: Option<usize>,
    /// The setting, as a path such as `$.sessions.max_live`.
    pub path: String,
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub mend: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}: {}: {}; {}", self.severity, self.path, self.what, self.mend)
    }
}
