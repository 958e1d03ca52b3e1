//! Whether what is stored is in force, and why not.
//!
//! Told to people in the log, once each time it begins; to orchestrators by the health route; to monitoring by a gauge.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use caribou_core::config::{Problem, Severity};
use tokio::time::Instant;

use crate::metrics::Metrics;

/// What is stored is not in force: the last good configuration is (contract 5.4).
#[derive(Clone, Debug)]
pub struct StaleConfig {
    /// Why, for people; the first of the problems if there are any.
    pub reason: String,
    /// What is wrong with the document, each with its place; empty when it cannot be read at all.
    pub problems: Vec<Problem>,
    since: Instant,
}

impl StaleConfig {
    /// A document that cannot be read.
    pub(super) fn unreadable(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), problems: Vec::new(), since: Instant::now() }
    }

    /// A document that is read and means nothing.
    pub(super) fn unusable(mut problems: Vec<Problem>) -> Self {
        problems.retain(|problem| problem.severity == Severity::Error);
        let reason = format!("the stored configuration cannot be used: {}", first_of(&problems));
        Self { problems, ..Self::unreadable(reason) }
    }

    /// For how long this has been so.
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

/// The first problem, and how many more there are.
pub(super) fn first_of(problems: &[Problem]) -> String {
    match problems {
        [] => "nobody knows why".to_owned(),
        [only] => only.to_string(),
        [first, more @ ..] => format!("{first} (and {} more)", more.len()),
    }
}

/// The state, shared by the actor, which writes it, and by who asks.
#[derive(Clone)]
pub(crate) struct Staleness {
    now: Arc<RwLock<Option<StaleConfig>>>,
    metrics: Arc<Metrics>,
}

impl Staleness {
    /// What is stored is in force.
    pub(crate) fn none(metrics: Arc<Metrics>) -> Self {
        metrics.config_stale(false);
        Self { now: Arc::default(), metrics }
    }

    pub(crate) fn get(&self) -> Option<StaleConfig> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn clear(&self) {
        if self.now.write().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            tracing::info!("the stored configuration is in force again");
        }
        self.metrics.config_stale(false);
    }

    pub(super) fn set(&self, stale: StaleConfig) {
        self.metrics.config_stale(true);
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        match now.as_mut() {
            None => {
                tracing::error!("the last good configuration stays in force: {}", stale.reason);
                *now = Some(stale);
            }
            // A slow writer shows a document that is broken elsewhere with each piece it writes.
            Some(known) if known.reason != stale.reason => {
                tracing::debug!("the stored configuration still cannot be used: {}", stale.reason);
                *known = StaleConfig { since: known.since, ..stale };
            }
            Some(_) => {}
        }
    }
}
