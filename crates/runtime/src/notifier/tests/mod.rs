//! The notifier over the store in memory, with a receiver that does what a test says, in paused time.

mod crashes;
mod phases;
mod random;
mod receiver;
mod replica;
