//! What may be done with a session next: whether there is room for one, how long a call in it may take, where its
//! files lie.

mod admission;
mod folder;
mod limits;

pub use admission::{Admission, Occupancy, admit};
pub use folder::thread_folder;
pub use limits::{CallLimits, call_limits};
