//! Spans over OTLP/gRPC, when the variable of the OpenTelemetry specification names a collector.
//!
//! Without one no layer wants spans, so their call sites are switched off and a call pays nothing for them.

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

/// The variables that name a collector; the second one is for spans alone.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// The exporter sends over h2 and hyper: their own spans would cause further exports without end.
const DIRECTIVES: &str = "info,ractor=warn,h2=off,hyper=off,hyper_util=off,tonic=off,tower=off";

/// Whether somebody wants spans.
pub(super) fn wanted() -> bool {
    ENDPOINTS.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Starts the exporter; its own thread batches, and a full queue drops spans rather than holding calls.
pub(super) fn start(resource: Resource) -> Result<SdkTracerProvider, ExporterBuildError> {
    let exporter = SpanExporter::builder().with_tonic().build()?;
    opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
    Ok(SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build())
}

/// The layer that turns spans of the log's API into exported ones.
pub(super) fn layer<S>(provider: &SdkTracerProvider) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("caribou"))
        .with_filter(EnvFilter::builder().parse_lossy(DIRECTIVES))
}
