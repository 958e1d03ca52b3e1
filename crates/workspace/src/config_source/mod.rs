//! The configuration file as a source that is followed and replaced (contract 1.11, 5.4).
//!
//! One file for each line of thought: [`source`] is what the runtime holds, [`stamp`] decides whether the content
//! moved, [`reading`] and [`writing`] touch the file, [`lock`] lets one writer in at a time, [`watch`] wakes who
//! waits, and [`reset_mark`] carries a reset to whoever shares the folder. The file is the truth: nothing of its content
//! is kept here but a hash.

mod lock;
pub(crate) mod reading;
mod reset_mark;
mod source;
mod stamp;
mod watch;
mod writing;

pub use source::ConfigFile;
