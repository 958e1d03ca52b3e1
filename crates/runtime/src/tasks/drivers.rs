//! Who speaks to servers about tasks, by the name that stands in the record of each task.

use std::collections::BTreeMap;
use std::sync::Arc;

use caribou_ports::task_driver::TaskDriver;

use super::answered::AnsweredCalls;

/// The driver for the tools of toolsets (contract 6.6).
pub(crate) const ORDINARY: &str = "ordinary-tools";

/// The driver of the tasks of revision 2025-11-25 (mcp.md §9.1).
pub(crate) const LEGACY: &str = "mcp-2025-11-25";

/// The driver of the tasks of the modern era (mcp.md §9.2).
pub(crate) const MODERN: &str = "mcp-tasks-2026";

/// The drivers of this replica. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Drivers(Arc<BTreeMap<&'static str, Arc<dyn TaskDriver>>>);

impl Drivers {
    pub(crate) fn new(drivers: impl IntoIterator<Item = Arc<dyn TaskDriver>>) -> Self {
        let ours: Arc<dyn TaskDriver> = Arc::new(AnsweredCalls);
        Self(Arc::new(drivers.into_iter().chain([ours]).map(|driver| (driver.name(), driver)).collect()))
    }

    /// The driver of this name. `None` = a version of Caribou that this one is not had it: the task waits for that one
    /// (contract 6.5, driver missing).
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<dyn TaskDriver>> {
        self.0.get(name)
    }
}
