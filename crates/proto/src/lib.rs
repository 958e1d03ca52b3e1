//! The generated code of `proto/`: messages, clients and servers. Nothing is written by hand here.
//!
//! A crate of its own because the server, the calls between replicas and the callouts of interceptors share it and must
//! not know each other.

#![allow(missing_docs, clippy::all, reason = "generated code carries the comments of its .proto files only")]

/// The public API, `proto/caribou/v1`.
pub mod v1 {
    tonic::include_proto!("caribou.v1");
}

/// What replicas say to one another, `proto/caribou/peer/v1`.
pub mod peer {
    /// The first version of it.
    pub mod v1 {
        tonic::include_proto!("caribou.peer.v1");
    }
}

/// An instant, as messages hold it.
pub use prost_types::Timestamp;

/// All descriptors, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = tonic::include_file_descriptor_set!("caribou");
