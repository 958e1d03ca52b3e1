//! One thing that is wrong with a document, where, and how to mend it.
//!
//! Owns the form people and programs read; what is wrong is said by the readers. Holds names and positions, never a
//! value of the document or of the environment (invariant O3).

use std::fmt;

use serde::Serialize;

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It costs the server it stands in, or the whole document.
    Error,
    /// It works, but hardly as meant.
    Warning,
    /// Worth knowing: a key that nothing reads.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// One problem. `Display` is one line: `file:line:column: severity: path: what; mend`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// Where in the document, as a JSON path such as `$.mcpServers.github.env.TOKEN`.
    pub path: String,
    /// What is wrong.
    pub what: String,
    /// How to mend it; may be empty.
    pub mend: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, file, line, column, path, what, mend } = self;
        write!(f, "{file}:{line}:{column}: {severity}: {path}: {what}")?;
        if mend.is_empty() { Ok(()) } else { write!(f, "; {mend}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line_for_people_and_an_object_for_programs() {
        let problem = Problem {
            severity: Severity::Warning,
            file: "x.json".into(),
            line: 3,
            column: 7,
            path: "$.mcpServers.a".into(),
            what: "odd".into(),
            mend: String::new(),
        };
        assert_eq!(problem.to_string(), "x.json:3:7: warning: $.mcpServers.a: odd");
        let object = serde_json::to_value(&problem).unwrap();
        assert_eq!((object["severity"].as_str(), object["column"].as_u64()), (Some("warning"), Some(7)));
    }
}
