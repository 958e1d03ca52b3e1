//! Keeps configured secrets out of what a person or a log reads (invariant O3).
//!
//! `mask` owns finding and replacing, `forms` the spellings in which a secret comes back. Which values are secrets is
//! said by those who configure them. A secret that is too short to be told from ordinary text is not looked for.

mod forms;
mod mask;

pub use mask::{MASK, Masker};
