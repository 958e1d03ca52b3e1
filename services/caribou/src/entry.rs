//! The first steps of the process: which of its four lives this is.
//!
//! Guard, shim and demo server are started by Caribou itself, many times; they get neither the argument parser nor
//! the multi-threaded runtime.

use std::process::ExitCode;

use crate::{commands, demo, guard};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the program that the command line asks for, to its end.
pub fn run() -> ExitCode {
    // Fails only when a provider is installed already, and then there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut words = std::env::args_os().skip(1);
    match words.next().as_deref().and_then(std::ffi::OsStr::to_str) {
        Some(guard::keeper::WORD) => guard::keeper::run(),
        Some(guard::shim::WORD) => guard::shim::run(words),
        Some(demo::SERVER_WORD) => demo::run_server(),
        _ => commands::run(),
    }
}
