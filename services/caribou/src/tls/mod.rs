//! Certificates: those we show to callers and to other replicas, and those we trust.
//!
//! Owns reading the files, saying which of them is wrong and why, and following them while a replica serves, so that a
//! renewed certificate holds without a restart. A file that is wrong at the start ends it; one that becomes wrong later
//! is told loudly, and the last good ones go on.

mod follow;
mod peers;
mod server;
mod trusted;

pub(crate) use follow::Followed;
pub(crate) use peers::{FollowedPeers, PeerMaterial};
pub(crate) use server::Material;
pub(crate) use trusted::{read_authorities, way_out};
