//! What may be done with a session next: whether there is room for one, and how long a call in it may take.

mod admission;
mod limits;

pub use admission::{Admission, Occupancy, admit};
pub use limits::{CallLimits, call_limits};
