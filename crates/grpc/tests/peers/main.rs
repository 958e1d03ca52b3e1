//! Both halves between replicas over real sockets, with an owner that does what a test says: calls, cuts, refusals,
//! certificates.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

mod calls;
mod certificates;
mod cuts;
mod owner;
mod proxy;
mod refusals;
mod stand;
