//! What may be done with a session next: which replica holds it, whether there is room for one, how long a call in it
//! may take, where its files lie.

mod admission;
mod folder;
mod key;
mod limits;
mod placement;
mod receive;
mod route;

pub use admission::{Admission, Occupancy, admit};
pub use folder::thread_folder;
pub use key::SessionRow;
pub use limits::{CallLimits, call_limits};
pub use placement::{Candidate, place};
pub use receive::{NotTaken, Received, receive};
pub use route::{GAP, Life, Owner, Ownership, Route, route};
