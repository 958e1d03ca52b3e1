//! What durable tasks are followed by: the store, the drivers and the receivers of events; and whether a replica may
//! start at all (contract 6.12).
//!
//! A deployment that configures tasks and cannot follow them does not start: an accepted task would be lost silently.

use std::sync::Arc;

use anyhow::bail;
use caribou_core::config::Document;
use caribou_core::task::TaskLimits;
use caribou_egress::WayOut;
use caribou_mcp::tasks::{LegacyTasks, ModernTasks, OrdinaryTools};
use caribou_notify::{LogSink, Webhook};
use caribou_ports::event_sink::EventSink;
use caribou_ports::task_driver::TaskDriver;
use caribou_runtime::DurableTasks;
use caribou_store::SqlStore;

use crate::settings::{Backend, Settings};

/// Refuses a configuration of task servers that could not be followed. A task server whose connection cannot be built
/// has failed the load already.
///
/// # Errors
/// Names the setting that is missing.
pub(crate) fn demand(settings: &Settings, document: &Document) -> anyhow::Result<()> {
    let enabled = document.servers.iter().filter_map(|entry| entry.config.as_ref().ok());
    let names: Vec<&str> = enabled
        .filter(|server| server.enabled && !server.task_toolsets.is_empty())
        .map(|server| server.name.as_str())
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let names = names.join(", ");
    if settings.mcp_tasks.enabled == Some(false) {
        bail!("mcp_tasks.enabled=true is required: these servers have task_toolsets: {names}");
    }
    if settings.database.backend == Some(Backend::Memory) {
        bail!("database.backend must be sqlite or postgres: these servers have task_toolsets: {names}");
    }
    Ok(())
}

/// What tasks are followed by; `None` = there are none: they are switched off, or nothing outlives this process.
///
/// # Errors
/// There is no HTTP client for the webhook.
pub(crate) fn durable(
    settings: &Settings,
    store: Option<&SqlStore>,
    way_out: &WayOut,
) -> anyhow::Result<Option<DurableTasks>> {
    let Some(store) = store.filter(|_| settings.mcp_tasks.enabled != Some(false)) else { return Ok(None) };
    Ok(Some(DurableTasks {
        store: Arc::new(store.clone()),
        drivers: drivers(settings.mcp_tasks.limits()),
        sinks: sinks(settings, way_out)?,
        is_watched: settings.mcp_tasks.notify.stream,
    }))
}

/// Who is told: the receivers that the settings name.
fn sinks(settings: &Settings, way_out: &WayOut) -> anyhow::Result<Vec<Arc<dyn EventSink>>> {
    let notify = &settings.mcp_tasks.notify;
    let mut sinks: Vec<Arc<dyn EventSink>> = Vec::new();
    if let Some(options) = notify.webhook.options() {
        sinks.push(Arc::new(Webhook::new(options, way_out.lead(reqwest::Client::builder()))?));
    }
    if notify.log {
        sinks.push(Arc::new(LogSink));
    }
    Ok(sinks)
}

/// One for the tools of toolsets, and one for each era's own tasks.
fn drivers(limits: TaskLimits) -> Vec<Arc<dyn TaskDriver>> {
    vec![Arc::new(OrdinaryTools::new(limits)), Arc::new(LegacyTasks::new(limits)), Arc::new(ModernTasks::new(limits))]
}
