//! Sets everything up in the right order, and flushes it at the end.

use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

use super::{Metrics, log, metrics, spans};
use crate::settings::Log;

/// How long the last spans may take to leave: a collector that is gone must not hold an exit.
const FLUSH: Duration = Duration::from_secs(3);

/// Telemetry of this process.
pub(crate) struct Telemetry {
    /// What `/metrics` shows.
    pub(crate) metrics: Metrics,
    spans: Option<SdkTracerProvider>,
}

/// Why telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TelemetryError {
    /// The span exporter refused its variables.
    #[error("spans cannot be exported: check the variables OTEL_EXPORTER_OTLP_… ({0})")]
    Spans(#[from] opentelemetry_otlp::ExporterBuildError),
    /// The metrics registry refused its exporter.
    #[error("metrics cannot be collected: {0}")]
    Metrics(#[from] opentelemetry_sdk::error::OTelSdkError),
    /// Somebody else set a subscriber up in this process.
    #[error("the log is already set up: {0}")]
    Log(#[from] TryInitError),
}

impl Telemetry {
    /// Sets up log, spans and metrics for the whole process. Must run on the runtime that the process keeps, before
    /// anything makes an instrument.
    ///
    /// # Errors
    /// [`TelemetryError`] when an `OTEL_…` variable is wrong, or on the second call in one process.
    pub(crate) fn start(settings: &Log) -> Result<Self, TelemetryError> {
        let resource = Resource::builder()
            .with_service_name("caribou")
            .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let metrics = metrics::start(resource.clone())?;
        let spans = if spans::wanted() { Some(spans::start(resource)?) } else { None };
        // One list in which every layer has its own filter: what none of them wants is then switched off at its call
        // site for good, rather than asked about at every call.
        let layers: Vec<_> = [log::layer(settings, spans.is_some())]
            .into_iter()
            .chain(spans.as_ref().map(|provider| spans::layer(provider).boxed()))
            .collect();
        tracing_subscriber::registry().with(layers).try_init()?;
        Ok(Self { metrics, spans })
    }

    /// Sends what is left, within a bound.
    pub(crate) async fn flush(self) {
        let Some(spans) = self.spans else { return };
        // The SDK's shutdown blocks its thread.
        let flushed = tokio::task::spawn_blocking(move || spans.shutdown_with_timeout(FLUSH)).await;
        if !matches!(flushed, Ok(Ok(()))) {
            tracing::warn!("the last spans could not be exported");
        }
    }
}
