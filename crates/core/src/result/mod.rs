//! Tool results as an agent reads them (contract 4.7).
//!
//! A result passes Caribou byte for byte; what stands here makes a second form beside it, for agents that want
//! content blocks, paths that are valid in their own file tree, and no forged prompt sections. Nothing is fetched,
//! copied or written.

mod content;
mod local_path;
mod neutralise;
mod references;
mod snapshot;
mod tokens;

pub use content::{AgentResult, Artifact, Block, Payload, Source};
pub use neutralise::neutralise;
pub use references::{ChangedFile, References, Resolve};
pub use snapshot::{Snapshot, Stamp, is_reserved_folder};
