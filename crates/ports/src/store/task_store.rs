//! All that following tasks needs of one store.

use super::{Notifications, Replicas, Tasks, Wakeups};

/// Tasks, what is told of them, hints, and the lives of replicas, in one place: their claims name those lives.
pub trait TaskStore: Tasks + Notifications + Wakeups + Replicas {}

impl<S: Tasks + Notifications + Wakeups + Replicas> TaskStore for S {}
