//! All that following tasks needs of one store.

use super::{Notifications, Replicas, Sessions, Tasks, ThreadVolumes, Wakeups};

/// Tasks, what is told of them, hints, and the lives of replicas, in one place: their claims name those lives.
pub trait TaskStore: Tasks + Notifications + Wakeups + Replicas {}

impl<S: Tasks + Notifications + Wakeups + Replicas> TaskStore for S {}

/// What replicas share besides: which of them holds which session, under the lives that tasks are claimed by.
pub trait ClusterStore: TaskStore + Sessions + ThreadVolumes {}

impl<S: TaskStore + Sessions + ThreadVolumes> ClusterStore for S {}
