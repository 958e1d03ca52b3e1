//! `caribou child-shim`: the last steps between fork and the server's program.
//!
//! They must happen in the child and cannot happen in the guard without unsafe code: a session and group of its own,
//! and the signal that ends it when the guard dies. Ends by becoming the program; if that fails, says so on stderr,
//! which the caller sees, and exits as a shell would (127 not found, 126 not executable).
//!
//! Signals: `exec` resets what the guard catches, and the standard library clears the signal mask and SIGPIPE.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getppid, set_parent_process_death_signal, setsid};

/// The word on the command line that selects the shim.
pub const WORD: &str = "child-shim";

/// Exit of a shim that could not prepare the child; never the exit of a program it became.
const NOT_PREPARED: u8 = 125;

/// Becomes the program. `args` are what stands after the word: `<guard-pid> -- program argument…`.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let guard = args.next().and_then(|pid| pid.to_str()?.parse::<i32>().ok());
    let program = args.nth(1);
    let (Some(guard), Some(program)) = (guard, program) else {
        eprintln!("`caribou {WORD}` is started by `caribou guard` only");
        return ExitCode::from(NOT_PREPARED);
    };
    if let Err(e) = prepare(guard) {
        eprintln!("cannot start `{}`: {e}", program.display());
        return ExitCode::from(NOT_PREPARED);
    }
    let error = Command::new(&program).args(args).exec();
    eprintln!("cannot start `{}`: {error}", program.display());
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

fn prepare(guard: i32) -> io::Result<()> {
    setsid()?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Asked after the signal was set: a guard that died before would never trigger it.
    if getppid().is_none_or(|parent| parent.as_raw_nonzero().get() != guard) {
        return Err(io::Error::other("the guard is gone"));
    }
    Ok(())
}
