//! Spans over OTLP, when a collector of them is named.
//!
//! Without one no layer wants spans, so their call sites are switched off and a call pays nothing for them.

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracerProvider};
use tracing::Subscriber;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use super::otlp::{Counted, QueuedSpans};

/// The exporter sends over h2 and hyper: their own spans would cause further exports without end.
const DIRECTIVES: &str = "info,ractor=warn,h2=off,hyper=off,hyper_util=off,tonic=off,tower=off,reqwest=off";

/// Starts the exporter; a thread of its own batches, and a full queue drops spans rather than holding calls.
pub(super) fn start(resource: Resource, exporter: Counted<SpanExporter>) -> SdkTracerProvider {
    opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
    let queue = exporter.queue.clone();
    let spans = QueuedSpans { batches: BatchSpanProcessor::builder(exporter).build(), queue };
    SdkTracerProvider::builder().with_resource(resource).with_span_processor(spans).build()
}

/// The layer that turns spans of the log's API into exported ones.
pub(super) fn layer<S>(provider: &SdkTracerProvider) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("caribou"))
        // Nobody looks for a call by lines of our source or by threads.
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_level(false)
        .with_tracked_inactivity(false)
        .with_filter(EnvFilter::builder().parse_lossy(DIRECTIVES))
}
