//! Metrics: made through the OpenTelemetry API wherever something happens, shown to Prometheus as text, and exported when
//! a collector is named.

use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::metrics::{Aggregation, Instrument, InstrumentKind, PeriodicReader, SdkMeterProvider, Stream};
use prometheus::{Registry, TextEncoder};

use super::otlp::Counted;

/// Bucket limits of everything measured in seconds: from a warm call over loopback to the bound of any call.
const SECONDS: [f64; 16] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0, 3_600.0];

/// The metrics of this process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Metrics(Registry);

impl Metrics {
    /// All metrics in Prometheus' text format.
    pub(crate) fn render(&self) -> String {
        TextEncoder::new().encode_to_string(&self.0.gather()).unwrap_or_else(|error| {
            tracing::error!(%error, "metrics could not be encoded");
            String::new()
        })
    }
}

/// What was set up.
pub(super) struct Started {
    /// What `/metrics` shows.
    pub(super) shown: Metrics,
    /// To export the last ones with.
    pub(super) provider: SdkMeterProvider,
}

/// Makes the process-wide meter provider; instruments made before this call count nothing. A thread of the reader exports
/// every minute, or as often as `OTEL_METRIC_EXPORT_INTERVAL` says.
pub(super) fn start(resource: Resource, exporter: Option<Counted<MetricExporter>>) -> Result<Started, OTelSdkError> {
    let registry = Registry::new();
    // Scope labels would repeat our own name on every line.
    let shown =
        opentelemetry_prometheus::exporter().with_registry(registry.clone()).scope_info_enabled(false).build()?;
    let builder = SdkMeterProvider::builder().with_resource(resource).with_reader(shown).with_view(buckets_of_seconds);
    let provider = match exporter {
        Some(exporter) => builder.with_reader(PeriodicReader::builder(exporter).build()),
        None => builder,
    };
    let provider = provider.build();
    opentelemetry::global::set_meter_provider(provider.clone());
    Ok(Started { shown: Metrics(registry), provider })
}

fn buckets_of_seconds(instrument: &Instrument) -> Option<Stream> {
    let of_seconds = instrument.kind() == InstrumentKind::Histogram && instrument.unit() == "s";
    let aggregation = Aggregation::ExplicitBucketHistogram { boundaries: SECONDS.to_vec(), record_min_max: false };
    if of_seconds { Stream::builder().with_aggregation(aggregation).build().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_of_seconds_is_shown_with_our_buckets_and_without_scope() {
        let metrics = start(Resource::builder().with_service_name("caribou").build(), None).unwrap().shown;
        let meter = opentelemetry::global::meter("caribou");
        meter.f64_histogram("caribou_call_duration").with_unit("s").build().record(0.02, &[]);
        let text = metrics.render();
        assert!(text.contains("caribou_call_duration_seconds_bucket{le=\"0.025\"} 1"), "{text}");
        assert!(!text.contains("otel_scope"), "{text}");
    }
}
