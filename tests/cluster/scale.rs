//! How large the runs are, and by which chance. The only place here that reads the environment.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::PathBuf;

use caribou_tests::seeded::Seeded;

/// What a run is told from outside.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    /// `CARIBOU_TEST_FULL=1`: the long form.
    pub(crate) is_full: bool,
    /// `CARIBOU_TEST_PROGRAM`: another build of Caribou than the one of the tests, for figures.
    pub(crate) program: Option<PathBuf>,
    /// `CARIBOU_TEST_SEED`: the choices of an earlier run.
    pub(crate) seed: u64,
}

impl Scale {
    /// Reads the environment, and prints the seed so that a failure can be followed up.
    pub(crate) fn read() -> Self {
        let is_full = std::env::var("CARIBOU_TEST_FULL").is_ok_and(|value| value == "1");
        let seed = std::env::var("CARIBOU_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        println!("CARIBOU_TEST_SEED={seed} CARIBOU_TEST_FULL={}", u8::from(is_full));
        Self { is_full, program: std::env::var_os("CARIBOU_TEST_PROGRAM").map(PathBuf::from), seed }
    }

    /// The one for the short form, or that for the long one.
    pub(crate) fn of<T>(&self, short: T, long: T) -> T {
        if self.is_full { long } else { short }
    }

    /// A source of chance.
    pub(crate) fn chance(&self) -> Seeded {
        Seeded::new(self.seed)
    }
}
