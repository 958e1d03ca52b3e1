//! The configuration in force and how it changes under a running replica.
//!
//! One [`actor`] reads the document, writes it, and puts it in force; everybody else reads [`in_force`]. A document
//! that cannot be used changes nothing: the last good one stays, and the status says since when and why. What an edit
//! touches is `caribou-core`'s decision; [`reconcile`] only carries it out, and [`catch_up`] what other replicas changed
//! (invariant G1). [`stored`] is the document where it is kept in the store.

mod actor;
mod catch_up;
mod desk;
mod edit;
mod in_force;
mod pending;
mod reconcile;
mod stale;
mod stored;
mod tell;

pub use actor::Configuration;
pub(crate) use actor::{ConfigurationActor, ConfigurationMessage, not_done, shown};
pub(crate) use desk::ConfigurationDesk;
pub(crate) use edit::{Change, LaunchRefused};
pub(crate) use in_force::{Binding, Configured, Generation, InForce};
pub(crate) use reconcile::reconciled;
pub use stale::StaleConfig;
pub use stored::StoredConfig;
