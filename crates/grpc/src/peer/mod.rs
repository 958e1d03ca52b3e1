//! Between the replicas of one cluster: sessions that live elsewhere, and those that others ask for here
//! (durability.md 2.2 and 6).
//!
//! Two halves over `proto/caribou/peer/v1`: [`PeerClient`] is the way out, [`serve_peers`] the way in, both between
//! members of one cluster only ([`Membership`]). Owns the connections and what travels on them; whether a request is
//! taken is its owner's to say ([`Owner`]). A call that may have reached its owner is never sent anew, only asked for
//! again under its name (invariant S2), results pass byte for byte (W1), and every wait and queue is bounded (B1).

use std::time::Duration;

use crate::signs_of_life::SignsOfLife;

mod client;
mod convert;
mod membership;
mod parts;
mod server;
mod status;

pub use client::{ClientConfigs, PeerClient, PeerOptions};
pub use membership::Membership;
pub use server::{Happened, Owner, PeerDoor, Running, serve_peers};

pub(crate) use server::is_exchange;

/// Between replicas, both ways: a cut cable is noticed within less than a lease (durability.md §6, keepalive).
const SIGNS_OF_LIFE: SignsOfLife = SignsOfLife { every: Duration::from_secs(5), within: Duration::from_secs(3) };
