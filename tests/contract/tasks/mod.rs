//! Durable tasks as callers and operators see them (contract chapter 6 and 2.3), against scripted task servers.
//!
//! [`stand`] is Caribou before one such server, [`receiver`] whoever is told about tasks. The other files follow the
//! contract's paragraphs; what is decided by tables alone is tested in `core`, and here only that it is asked.

mod background;
mod cancels;
mod events;
mod exposure;
mod frozen;
mod own_servers;
mod polls;
mod receiver;
mod recovery;
mod retold;
mod settings;
mod sizes;
mod stand;
mod startup;
mod submits;
mod two_replicas;
mod unstored;
