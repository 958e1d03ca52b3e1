//! Which tools there are: one cached entry a server, discovered on demand and each on its own.
//!
//! [`actor`] runs one discovery of a server at a time and publishes what it finds as one immutable [`snapshot`], which
//! callers read without a message. A server that fails is absent and says why; the others are served (contract 5.1,
//! 5.3). [`dirty`] remembers whose list changed upstream; it is asked for again at the next look-up.

mod actor;
mod changes;
mod dirty;
mod discover;
mod lookup;
mod makes;
mod offer;
mod snapshot;

pub(crate) use actor::{CatalogActor, CatalogMessage};
pub(crate) use dirty::DirtyLists;
pub(crate) use lookup::Catalog;
pub(crate) use makes::Makes;
pub(crate) use offer::Offer;
pub(crate) use snapshot::{Entry, EntryState, Published, Snapshot, Target};
