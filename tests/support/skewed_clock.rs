//! A wall clock that is wrong, and jumps: what `libfaketime` makes of the time of day for one process. The clocks that
//! only go on stay as they are, as on a machine whose clock is set.

use std::fs;
use std::path::PathBuf;

use crate::Home;
use crate::servers::target_folder;

/// The wall clock of some processes.
pub struct SkewedClock {
    /// Read again for each look at the clock.
    file: PathBuf,
    _home: Home,
}

impl SkewedClock {
    /// A clock that is right until it is set.
    pub fn new() -> Self {
        let home = Home::new();
        let clock = Self { file: home.join("clock"), _home: home };
        clock.set(0);
        clock
    }

    /// Sets it to so many seconds after the right time, or before.
    pub fn set(&self, seconds: i64) {
        let next = self.file.with_extension("next");
        fs::write(&next, format!("{seconds:+}\n")).expect("a folder of the test's own");
        fs::rename(&next, &self.file).expect("the same folder");
    }

    /// What a process is started with that goes by it.
    ///
    /// # Panics
    /// The library is missing.
    pub fn variables(&self) -> Vec<(String, String)> {
        let folder = format!("lib/{}-linux-gnu/faketime/libfaketime.so.1", std::env::consts::ARCH);
        let places = [PathBuf::from("/usr"), target_folder().join("servers/usr")].map(|root| root.join(&folder));
        let library = places.iter().find(|place| place.is_file());
        let library = library.expect("libfaketime is missing; run tests/run, which installs it under target/");
        let text = |path: &PathBuf| path.display().to_string();
        [
            ("LD_PRELOAD", text(library)),
            ("FAKETIME_TIMESTAMP_FILE", text(&self.file)),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

impl Default for SkewedClock {
    fn default() -> Self {
        Self::new()
    }
}
