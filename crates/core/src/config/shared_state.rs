//! Servers known to keep the state of all their processes in one file unless told otherwise.
//!
//! A session is one user's in one thread; a server that writes everybody's state into one file beside its own program
//! breaks that without a word. For those named here each thread gets a file of its own. An operator who wants one
//! file for all sets the variable in `env`.

use std::path::PathBuf;

use super::Stdio;

/// Package, the variable that names its file, and the file's name.
const KNOWN: [(&str, &str, &str); 1] = [("@modelcontextprotocol/server-memory", "MEMORY_FILE_PATH", "memory.jsonl")];

/// Adds what keeps the threads of a known server apart, where the configuration says nothing about it.
pub(super) fn keep_apart(stdio: &mut Stdio) {
    for (package, variable, file) in KNOWN {
        let set = stdio.env.iter().any(|(name, _)| name == variable)
            || stdio.thread_files.iter().any(|(name, _)| name == variable);
        if !set && stdio.args.iter().any(|arg| is_package(arg, package)) {
            stdio.thread_files.push((variable.to_owned(), PathBuf::from(file)));
        }
    }
}

/// `package`, with or without a version, as a launcher takes it.
fn is_package(arg: &str, package: &str) -> bool {
    let named = arg.strip_prefix("--package=").unwrap_or(arg);
    named.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    fn files(args: &[&str], env: &[&str]) -> Vec<(String, PathBuf)> {
        let mut stdio = Stdio {
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: env.iter().map(|name| ((*name).to_owned(), Secret::new("/all"))).collect(),
            ..Stdio::default()
        };
        keep_apart(&mut stdio);
        stdio.thread_files
    }

    #[test]
    fn a_known_server_gets_a_file_for_each_thread_unless_the_operator_names_one() {
        let own = [("MEMORY_FILE_PATH".to_owned(), PathBuf::from("memory.jsonl"))];
        for package in ["@modelcontextprotocol/server-memory", "@modelcontextprotocol/server-memory@2026.8.31"] {
            assert_eq!(files(&["-y", package], &[]), own);
        }
        assert!(files(&["-y", "@modelcontextprotocol/server-memory"], &["MEMORY_FILE_PATH"]).is_empty());
        assert!(files(&["-y", "@modelcontextprotocol/server-memory-x"], &[]).is_empty());
    }
}
