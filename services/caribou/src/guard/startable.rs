//! Can this program be started at all, asked before the fork so that the answer is an error and not an exit code.
//!
//! Follows `execvp`: a name without a slash is looked up on the `PATH` of the child's own environment. The kernel has
//! the last word (a missing interpreter, a foreign format); the shim reports that. Messages name the program, never
//! its arguments, its environment or its folder (invariant O3).

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::frame::Spawn;

/// Where `execvp` looks when the environment has no `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// `Err` says in one sentence why not.
pub(super) fn check(spawn: &Spawn) -> Result<(), String> {
    let Some(program) = spawn.argv.first().filter(|program| !program.is_empty()) else {
        return Err("cannot start a server: its command is empty".to_owned());
    };
    match reason(program, spawn) {
        None => Ok(()),
        Some(reason) => Err(format!("cannot start `{}`: {reason}", shown(program))),
    }
}

/// Whether a program could be started with this `PATH` in this folder; nothing is.
///
/// # Errors
/// In one sentence why not.
pub(crate) fn could_start(program: &str, path: Option<String>, cwd: Option<PathBuf>) -> Result<(), String> {
    let env = path.map(|path| ("PATH".to_owned(), path)).into_iter().collect();
    check(&Spawn { child: 0, session: String::new(), argv: vec![program.to_owned()], env, cwd })
}

/// A program's name for people: a report has a limit.
pub(super) fn shown(program: &str) -> String {
    program.chars().take(200).collect()
}

fn reason(program: &str, spawn: &Spawn) -> Option<Cow<'static, str>> {
    let cwd = spawn.cwd.as_deref().unwrap_or(Path::new("."));
    if !cwd.is_dir() {
        let fault = if cwd.exists() { "is not a folder" } else { "does not exist" };
        return Some(format!("its working directory {} {fault}", cwd.display()).into());
    }
    missing(program, spawn, cwd).map(Cow::Borrowed)
}

fn missing(program: &str, spawn: &Spawn, cwd: &Path) -> Option<&'static str> {
    if program.contains('/') {
        return match find(&cwd.join(program)) {
            Found::Executable => None,
            Found::NotExecutable => Some("it is not an executable file"),
            Found::Nothing => Some("no such file"),
        };
    }
    let path = spawn.env.iter().rev().find(|(name, _)| name == "PATH").map_or(DEFAULT_PATH, |(_, value)| value);
    let best = path.split(':').map(|folder| find(&cwd.join(folder).join(program))).max();
    match best.unwrap_or(Found::Nothing) {
        Found::Executable => None,
        Found::NotExecutable => Some("found on PATH, but it is not an executable file"),
        Found::Nothing => Some("not found on PATH"),
    }
}

/// What stands at a path, worst first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Nothing,
    NotExecutable,
    Executable,
}

fn find(path: &Path) -> Found {
    match path.metadata() {
        Err(_) => Found::Nothing,
        Ok(file) if file.is_file() && access(path, Access::EXEC_OK).is_ok() => Found::Executable,
        Ok(_) => Found::NotExecutable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(program: &str, path: Option<&str>, cwd: Option<&str>) -> Result<(), String> {
        let env = path.map(|path| ("PATH".to_owned(), path.to_owned())).into_iter().collect();
        check(&Spawn {
            child: 1,
            session: String::new(),
            argv: vec![program.to_owned(), "--token=secret".to_owned()],
            env,
            cwd: cwd.map(PathBuf::from),
        })
    }

    #[test]
    fn a_bare_name_is_looked_up_on_the_path_of_the_child() {
        assert_eq!(checked("sh", Some("/nowhere:/bin"), None), Ok(()));
        assert_eq!(checked("sh", None, None), Ok(()));
        assert_eq!(checked("sh", Some("/nowhere"), None), Err("cannot start `sh`: not found on PATH".to_owned()));
    }

    #[test]
    fn a_path_is_taken_from_the_working_directory() {
        assert_eq!(checked("./sh", None, Some("/bin")), Ok(()));
        assert_eq!(checked("./sh", None, Some("/")), Err("cannot start `./sh`: no such file".to_owned()));
    }

    #[test]
    fn a_missing_folder_and_a_plain_file_are_told_apart() {
        let folder = checked("sh", None, Some("/no/such/folder")).unwrap_err();
        assert_eq!(folder, "cannot start `sh`: its working directory /no/such/folder does not exist");
        assert!(checked("/etc/passwd", None, None).unwrap_err().ends_with("it is not an executable file"));
        assert!(checked("/etc", None, None).unwrap_err().ends_with("it is not an executable file"));
        assert!(checked("", None, None).unwrap_err().contains("empty"));
    }
}
