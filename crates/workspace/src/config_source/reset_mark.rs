//! The mark of the last reset, beside the configuration file: heard by every process that mounts its folder (contract
//! 5.7).
//!
//! Owns the file `.<name>.reset` and what stands in it: a text that nobody wrote before. Only whether it differs
//! counts, so a half-written mark at worst resets twice. A mark that is gone says nothing.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use caribou_ports::config_source::ResetMark;

use super::lock::beside;
use super::reading::file_clock;

/// Longer than any mark: a foreign file of this name is not read whole.
const MAX_BYTES: u64 = 64;

/// The mark beside `file`, if there is one.
pub(super) fn read(file: &Path) -> Option<ResetMark> {
    let mut mark = Vec::new();
    File::open(beside(file, "reset")).ok()?.take(MAX_BYTES).read_to_end(&mut mark).ok()?;
    Some(ResetMark(mark))
}

/// Leaves a new mark beside `file`.
///
/// # Errors
/// What the system said.
pub(super) fn publish(file: &Path) -> io::Result<ResetMark> {
    let mark = format!("{}-{}\n", file_clock().as_nanos(), std::process::id()).into_bytes();
    fs::write(beside(file, "reset"), &mark)?;
    Ok(ResetMark(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_differs_from_the_one_before() {
        // Contract 5.7.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.json");
        assert_eq!(read(&file), None);
        let first = publish(&file).unwrap();
        assert_eq!(read(&file), Some(first.clone()));
        let second = publish(&file).unwrap();
        assert_ne!(first, second);
        assert_eq!(read(&file), Some(second));
    }
}
