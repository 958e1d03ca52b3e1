//! A stateful server over stdio that counts, and a diary of all its lives: who lived when, and what reached whom.
//!
//! Its count is in its memory, so a lost, repeated or doubled session shows in the numbers. All processes of one test
//! write into one folder, by the clock that every process of this machine shares; a lock for each session proves that
//! two of its lives never met, however short. As badly behaved as its variables say.

mod bearing;
mod diary;
mod lives;
mod process;

pub use bearing::Bearing;
pub use diary::{Diary, boot_clock_ns};
pub use lives::{Execution, Life, Lives};
pub use process::serve as serve_counter;
