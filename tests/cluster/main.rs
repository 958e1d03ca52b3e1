//! What only processes show: durable tasks, sessions and children while replicas are killed, frozen, cut off and rolled
//! (architecture.md §8, durability.md §8).
//!
//! Every run starts the real program, submits tasks through its doors, does harm on a schedule, and then reckons up what
//! the database, the server of the tasks and the receiver of their events know. The short forms run always; with
//! `CARIBOU_TEST_FULL=1` the long ones run instead. A run prints its seed and its figures, and asserts that its faults
//! have bitten. `CARIBOU_TEST_SEED` repeats the choices of a run; what the processes do meanwhile is theirs.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

mod audit;
mod children;
mod fleet;
mod generations;
mod load;
mod membership;
mod oauth;
mod oauth_faults;
mod reckoning;
mod records;
mod rolling;
mod scale;
mod schedule;
mod sessions;
mod signals;
mod tasks;
mod traces;
mod trial;
mod webhook;
