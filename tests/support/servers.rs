//! Programs of others that the tests start privately: where they are, and as whom they run.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// `nobody` on every Linux system.
const NOBODY: u32 = 65_534;

/// The build's target folder, under which `tests/run` installs what is missing.
pub fn target_folder() -> PathBuf {
    let program = std::env::current_exe().expect("a program knows its own path");
    // target/<profile>/deps/<test>, or target/<profile>/<program>
    let folder = program.parent().expect("a program lies in a folder");
    let profile = if folder.ends_with("deps") { folder.parent() } else { Some(folder) };
    profile.and_then(Path::parent).expect("what is built lies in the target folder").to_owned()
}

/// The folder that holds all of `programs`: one of `PATH`, of Debian's PostgreSQL, or of `target/servers`.
///
/// # Panics
/// None does.
pub fn folder_with(programs: &[&str]) -> PathBuf {
    let private = target_folder().join("servers/usr");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(versions(Path::new("/usr/lib/postgresql")));
    folders.extend(versions(&private.join("lib/postgresql")));
    folders.push(private.join("bin"));
    let found = folders.into_iter().find(|folder| programs.iter().all(|program| folder.join(program).is_file()));
    found.unwrap_or_else(|| panic!("{programs:?} not found; run tests/run, which installs them under target/"))
}

fn versions(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join("bin")).collect()
}

/// A command for `program` that runs without privileges and finds the libraries installed beside it.
pub fn unprivileged(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let libraries = target_folder().join("servers/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    if libraries.is_dir() {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Makes a folder that an unprivileged server may write to.
pub fn make_data_folder(path: &Path) {
    fs::create_dir_all(path).expect("a data folder can be made");
    if rustix::process::geteuid().is_root() {
        let parent = path.parent().expect("a data folder lies in a test's own folder");
        chown(parent, Some(NOBODY), Some(NOBODY)).expect("root may give a folder away");
        chown(path, Some(NOBODY), Some(NOBODY)).expect("root may give a folder away");
    }
}

/// A server's process, killed and reaped when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// How it is ended: SIGQUIT lets PostgreSQL take its own children along.
    signal: rustix::process::Signal,
}

impl Running {
    /// Takes over a started process.
    pub fn new(child: Child, signal: rustix::process::Signal) -> Self {
        Self { child, signal }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        crate::process::signal(self.child.id(), self.signal);
        let _ = self.child.wait();
    }
}
