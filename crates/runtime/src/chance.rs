//! Chance, to spread replicas and waits out. Nothing depends on it being hard to guess.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Somewhere from 0 to 1, another number each time.
pub(crate) fn chance() -> f64 {
    f64::from(RandomState::new().build_hasher().finish() as u32) / f64::from(u32::MAX)
}
