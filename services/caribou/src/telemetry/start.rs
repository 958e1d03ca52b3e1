//! Sets everything up in the right order, and flushes it at the end.

use std::time::Duration;

use caribou_core::ids::BootId;
use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

use super::otlp::{Collector, Counted, Exporters, Queue, Signal};
use super::{Metrics, lines, log, metrics, spans};
use crate::settings::Settings;

/// How long the last spans, metrics and lines may take to leave, together: a collector that is gone must not hold an exit.
const FLUSH: Duration = Duration::from_secs(3);

/// Telemetry of this process.
pub(crate) struct Telemetry {
    /// What `/metrics` shows.
    pub(crate) metrics: Metrics,
    /// This life: what a replica is called in the cluster, and `service.instance.id` of all that is exported.
    pub(crate) boot: BootId,
    spans: Option<SdkTracerProvider>,
    lines: Option<SdkLoggerProvider>,
    /// `None` when nothing is exported that could be flushed.
    counted: Option<SdkMeterProvider>,
}

/// Why telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TelemetryError {
    /// An exporter refused its settings. Its own words may repeat the address, so they are not told.
    #[error("telemetry cannot be exported: check `telemetry.otlp_endpoint` and the variables OTEL_EXPORTER_OTLP_…")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// A variable names something else than a protocol of ours.
    #[error("{0} must be `grpc` or `http/protobuf`")]
    Protocol(String),
    /// There is no HTTP client.
    #[error("telemetry cannot be exported over HTTP: {0}")]
    Client(reqwest::Error),
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
    /// [`TelemetryError`] when a setting or an `OTEL_…` variable is wrong, or on the second call in one process.
    pub(crate) fn start(settings: &Settings) -> Result<Self, TelemetryError> {
        let boot = BootId::new(uuid::Uuid::now_v7().to_string());
        let resource = resource(&boot);
        let variable = |name: &str| std::env::var(name).ok();
        let goes = |signal| Collector::of(signal, &settings.telemetry, &variable);
        let mut exporters = Exporters::default();
        let mut queues = Vec::new();
        let mut queue = |signal, variable| {
            let queue = Queue::of(signal, variable);
            queues.push(queue.clone());
            queue
        };
        let exporter = match goes(Signal::Metrics)? {
            // Nothing of it waits: a collection is made when it is sent.
            Some(to) => Some(Counted { exporter: exporters.of_metrics(&to)?, queue: queue(Signal::Metrics, "") }),
            None => None,
        };
        let is_exported = exporter.is_some();
        let counted = metrics::start(resource.clone(), exporter)?;
        let spans = match goes(Signal::Traces)? {
            Some(to) => {
                let queue = queue(Signal::Traces, "OTEL_BSP_MAX_QUEUE_SIZE");
                Some(spans::start(resource.clone(), Counted { exporter: exporters.of_spans(&to)?, queue }))
            }
            None => None,
        };
        let lines = match goes(Signal::Logs)? {
            Some(to) => {
                let queue = queue(Signal::Logs, "OTEL_BLRP_MAX_QUEUE_SIZE");
                Some(lines::start(resource, Counted { exporter: exporters.of_logs(&to)?, queue }))
            }
            None => None,
        };
        queues.iter().for_each(Queue::begin);
        // One list in which every layer has its own filter: what none of them wants is then switched off at its call
        // site for good, rather than asked about at every call.
        let layers: Vec<_> = [log::layer(&settings.log, spans.is_some())]
            .into_iter()
            .chain(spans.as_ref().map(|provider| spans::layer(provider).boxed()))
            .chain(lines.as_ref().map(|provider| lines::layer(provider, &settings.log).boxed()))
            .collect();
        tracing_subscriber::registry().with(layers).try_init()?;
        let provider = is_exported.then_some(counted.provider);
        Ok(Self { metrics: counted.shown, boot, spans, lines, counted: provider })
    }

    /// Sends what is left, within a bound.
    pub(crate) async fn flush(self) {
        // Each blocks its thread.
        let spans = flushed(self.spans, |spans| spans.shutdown_with_timeout(FLUSH));
        let lines = flushed(self.lines, |lines| lines.shutdown_with_timeout(FLUSH));
        let counted = flushed(self.counted, |counted| counted.shutdown_with_timeout(FLUSH));
        let (spans, lines, counted) = tokio::join!(spans, lines, counted);
        if !(spans && lines && counted) {
            tracing::warn!("the last spans, metrics or log lines could not be exported");
        }
    }
}

/// Whether nothing is left of it.
async fn flushed<P: Send + 'static>(
    provider: Option<P>,
    flush: impl FnOnce(P) -> OTelSdkResult + Send + 'static,
) -> bool {
    let Some(provider) = provider else { return true };
    matches!(tokio::task::spawn_blocking(move || flush(provider)).await, Ok(Ok(())))
}

/// What all that is exported says of this process. Variables of OpenTelemetry may name the service otherwise and say more.
fn resource(boot: &BootId) -> Resource {
    let named = std::env::var("OTEL_SERVICE_NAME").is_ok_and(|name| !name.is_empty())
        || std::env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|all| all.contains("service.name="));
    let builder = Resource::builder().with_attributes([
        KeyValue::new("service.instance.id", boot.to_string()),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
    ]);
    if named { builder } else { builder.with_service_name("caribou") }.build()
}
