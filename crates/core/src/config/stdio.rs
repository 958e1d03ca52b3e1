//! The fields of a child process: `command`, `args`, `env`, `cwd` (contract 1.2, 1.10).
//!
//! Owns what they may hold and where relative paths start; starting the child and looking whether its directory
//! exists are the connector's. Whatever is wrong costs the server.

use std::path::{Component, Path, PathBuf};

use super::fields::{Field, Fields};
use super::{Secret, Stdio, shared_state};

/// Reads them; `dir` is the folder of the configuration file.
pub(super) fn read(server: &Fields<'_>, dir: &Path) -> Stdio {
    const MEND: &str = "add \"command\": the program to start";
    let cwd = cwd(server, dir);
    let command = server.required("command", "type stdio requires 'command' field", MEND);
    if let Some(field) = server.get("command") {
        refuse_nul(&field);
    }
    let command = command.map(|text| from_cwd(&text.value, cwd.as_deref())).unwrap_or_default();
    let mut stdio = Stdio { command, args: args(server), env: env(server), cwd, thread_files: thread_files(server) };
    shared_state::keep_apart(&mut stdio);
    stdio
}

/// A relative program with a slash is found from `cwd`, not from where Caribou happens to run.
fn from_cwd(command: &str, cwd: Option<&Path>) -> String {
    match cwd {
        Some(cwd) if command.contains('/') && !command.starts_with('/') => cwd.join(command).display().to_string(),
        _ => command.to_owned(),
    }
}

fn args(server: &Fields<'_>) -> Vec<String> {
    for arg in server.get("args").and_then(|field| field.as_list()).into_iter().flatten() {
        refuse_nul(&arg);
    }
    server.texts("args").into_iter().map(|arg| arg.value.clone()).collect()
}

fn env(server: &Fields<'_>) -> Vec<(String, Secret)> {
    let mut env = Vec::new();
    for (name, field, text) in server.text_map("env") {
        check_variable(name, &field);
        env.push((name.to_owned(), Secret::new(&*text.value)));
    }
    env
}

/// Our own `thread_files`: a variable of the child to a path inside its thread's folder.
fn thread_files(server: &Fields<'_>) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    for (name, field, text) in server.text_map("thread_files") {
        check_variable(name, &field);
        let path = PathBuf::from(&*text.value);
        let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !inside || path.as_os_str().is_empty() {
            field.error("must be a relative path inside the thread's folder", "write it without a leading / and ..");
        }
        files.push((name.to_owned(), path));
    }
    files
}

fn check_variable(name: &str, field: &Field<'_>) {
    if name.is_empty() || name.contains(['=', '\0']) {
        field.error("the name of a variable must not be empty or hold = or NUL", "");
    }
    refuse_nul(field);
}

/// Empty, null and an unset variable are the same as no `cwd` (contract 4.6).
fn cwd(server: &Fields<'_>, dir: &Path) -> Option<PathBuf> {
    refuse_nul(&server.get("cwd")?);
    let cwd = &server.text("cwd")?.value;
    (!cwd.trim().is_empty()).then(|| dir.join(cwd))
}

/// No argument, variable or path of a process can hold a NUL.
fn refuse_nul(field: &Field<'_>) {
    if field.as_text().is_some_and(|text| text.value.contains('\0')) {
        field.error("holds a NUL character", "");
    }
}

#[cfg(test)]
mod tests {
    use crate::config::samples::{assert_dropped, assert_quiet, good};
    use crate::config::{Stdio, Transport};

    fn child(body: &str) -> Stdio {
        match &good(body).transport {
            Transport::Stdio(stdio) => stdio.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_parameters_of_a_child_are_as_written_and_in_order() {
        // Contract 1.10.
        let stdio =
            child(r#""type": "stdio", "command": "npx", "args": ["-y", "$TOKEN"], "env": {"Z": "1", "A": "$EMPTY"}"#);
        assert_eq!((stdio.command.as_str(), stdio.cwd.as_deref()), ("npx", None));
        assert_eq!(stdio.args, ["-y", "tok-123456"]);
        let env: Vec<_> = stdio.env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(env, [("Z", "1"), ("A", "")]);
    }

    #[test]
    fn wrong_parameters_of_a_child_are_named() {
        // Contract 1.2.
        assert_dropped(&[
            (r#""command": null"#, "requires 'command' field"),
            (r#""command": "  ""#, "command: type stdio requires 'command' field: it is empty"),
            (r#""command": "$UNSET""#, "the variable `UNSET` is empty or not set"),
            (r#""command": "x", "args": ["a", 1]"#, "args[1]: must be a string, not a number"),
            (r#""command": "x", "args": null"#, "args: must be a list, not null"),
            (r#""command": "x", "env": {"A": 1}"#, "env.A: must be a string, not a number"),
            (r#""command": "x", "env": {"A=B": "1"}"#, r#"env["A=B"]: the name of a variable"#),
            (r#""command": "x", "args": ["\u0000"]"#, "args[0]: holds a NUL"),
            (r#""command": "x", "cwd": 1"#, "cwd: must be a string"),
        ]);
    }

    #[test]
    fn a_relative_directory_starts_at_the_folder_of_the_file_and_an_empty_one_is_none() {
        // Contract 4.6, 1.2.
        for (cwd, expected) in [
            (r#""/abs""#, Some("/abs")),
            (r#""work""#, Some("/etc/caribou/work")),
            (r#""$WORK""#, Some("/srv/work")),
            (r#""""#, None),
            ("null", None),
            (r#""$UNSET""#, None),
        ] {
            let stdio = child(&format!(r#""command": "x", "cwd": {cwd}"#));
            assert_eq!(stdio.cwd.as_deref().and_then(|cwd| cwd.to_str()), expected, "{cwd}");
        }
        assert_quiet(&[r#""command": "x", "cwd": "work""#]);
    }

    #[test]
    fn files_of_a_thread_stay_inside_its_folder() {
        let stdio = child(r#""command": "x", "thread_files": {"MEMORY_FILE_PATH": "memory.jsonl", "DB": "a/b.db"}"#);
        let files: Vec<_> = stdio.thread_files.iter().map(|(name, path)| (name.as_str(), path.to_str())).collect();
        assert_eq!(files, [("MEMORY_FILE_PATH", Some("memory.jsonl")), ("DB", Some("a/b.db"))]);
        let outside = ["/etc/x", "../x", "a/../../x", "", "."];
        for path in outside {
            let body = format!(r#""command": "x", "thread_files": {{"A": "{path}"}}"#);
            assert_dropped(&[(body.as_str(), "thread_files.A: must be a relative path inside")]);
        }
    }

    #[test]
    fn a_relative_program_with_a_slash_is_found_from_its_directory() {
        assert_eq!(child(r#""command": "./run", "cwd": "work""#).command, "/etc/caribou/work/./run");
        for unchanged in ["run", "/bin/run"] {
            assert_eq!(child(&format!(r#""command": "{unchanged}", "cwd": "work""#)).command, unchanged);
        }
    }
}
