//! The configuration in force and how it changes under a running replica.
//!
//! One [`actor`] reads the document, writes it, and puts it in force; everybody else reads [`in_force`]. A document
//! that cannot be used changes nothing: the last good one stays, and the status says since when and why. What an edit
//! touches is `caribou-core`'s decision; [`reconcile`] only carries it out (invariant G1).

mod actor;
mod edit;
mod in_force;
mod pending;
mod reconcile;
mod stale;
mod tell;

pub use actor::Configuration;
pub(crate) use actor::{ConfigurationActor, ConfigurationDesk, ConfigurationMessage};
pub(crate) use edit::{Change, LaunchRefused};
pub(crate) use in_force::{Binding, Configured, Generation, InForce};
pub(crate) use reconcile::reconciled;
pub use stale::StaleConfig;
