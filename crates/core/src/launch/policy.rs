//! The verdict: every check of a launch, in the order of contract 3.1.
//!
//! Owns the order, the shape of a command's name and what is refused; the lists are beside it.

use super::{Allowlist, environment, npx, other, uvx};
use crate::config::{ServerConfig, Transport};

/// What would be started: words as the process would get them, references to the environment resolved.
///
/// Holds no value of a variable. Without `Debug`: some servers take their key as an argument.
#[derive(Clone)]
pub struct Request<'a> {
    /// The program; empty when none is named.
    pub command: &'a str,
    /// Its arguments.
    pub args: Vec<&'a str>,
    /// Names of the variables it would get on top of ours.
    pub variables: Vec<&'a str>,
}

impl<'a> Request<'a> {
    /// What `server` would start; `None` for a remote one, which starts nothing whatever its fields say.
    pub fn of(server: &'a ServerConfig) -> Option<Self> {
        let Transport::Stdio(stdio) = &server.transport else { return None };
        let variables = stdio.env.iter().map(|(name, _)| name).chain(stdio.thread_files.iter().map(|(name, _)| name));
        Some(Self {
            command: &stdio.command,
            args: stdio.args.iter().map(String::as_str).collect(),
            variables: variables.map(String::as_str).collect(),
        })
    }
}

/// Why a command may not be started. `Display` continues a sentence that begins with the server's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No command, or a blank one.
    #[error("requires a command")]
    NoCommand,
    /// The command is a path, or holds more than a name.
    #[error("must be a single executable name: no path, no spaces, no shell characters")]
    CommandShape,
    /// The command is not on the list.
    #[error("uses disallowed stdio command; allowed are {}", allowed.join(", "))]
    NotAllowed {
        /// What is on the list, sorted.
        allowed: Vec<String>,
    },
    /// This option makes the launcher evaluate a text, or hand one to an interpreter.
    #[error("passes '{0}', which would run arbitrary code")]
    Flag(&'static str),
    /// npx hands the name of the command to a shell.
    #[error("passes npx a command that holds shell characters, which would run arbitrary code")]
    CommandWord,
    /// This variable makes programs run code.
    #[error("sets environment variable '{0}', which runs code at process startup")]
    Variable(&'static str),
}

/// Whether `request` may be started.
///
/// # Errors
/// The first reason against it, in the order of contract 3.1.
pub fn judge(request: &Request<'_>, allowlist: &Allowlist) -> Result<(), Refusal> {
    let Request { command, args, variables } = request;
    check_name(command)?;
    if !allowlist.allows(command) {
        return Err(Refusal::NotAllowed { allowed: allowlist.names() });
    }
    match command.to_ascii_lowercase().as_str() {
        "npx" => npx::screen(args, variables)?,
        "uvx" => uvx::screen(args)?,
        _ => other::screen(args)?,
    }
    match variables.iter().find_map(|variable| environment::code(variable)) {
        Some(variable) => Err(Refusal::Variable(variable)),
        None => Ok(()),
    }
}

fn check_name(command: &str) -> Result<(), Refusal> {
    let foreign = |c: char| c.is_whitespace() || r"/\;|&`$<>".contains(c);
    if command.trim().is_empty() {
        Err(Refusal::NoCommand)
    } else if command.contains(foreign) {
        Err(Refusal::CommandShape)
    } else {
        Ok(())
    }
}
