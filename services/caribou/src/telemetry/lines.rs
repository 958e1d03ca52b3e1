//! Log lines over OTLP, when a collector of them is named: the lines of the log on stderr, each with the span that it was
//! written in.
//!
//! What the log does not show is not exported either, nor what the exporter's own libraries say of an export.

use opentelemetry::logs::{AnyValue, LogRecord as _, Logger as _, LoggerProvider as _, Severity};
use opentelemetry_otlp::LogExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::{BatchLogProcessor, SdkLogger, SdkLoggerProvider};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::log::directives;
use super::otlp::{Counted, QueuedLogs};
use crate::settings::Log;

/// Crates that send exports: a line of theirs would cause a further export, without end.
const SENDERS: [&str; 7] = ["opentelemetry", "h2", "hyper", "hyper_util", "reqwest", "tonic", "tower"];

/// Starts the exporter; a thread of its own batches, and a full queue drops lines rather than holding who wrote them.
pub(super) fn start(resource: Resource, exporter: Counted<LogExporter>) -> SdkLoggerProvider {
    let queue = exporter.queue.clone();
    let lines = QueuedLogs { batches: BatchLogProcessor::builder(exporter).build(), queue };
    SdkLoggerProvider::builder().with_resource(resource).with_log_processor(lines).build()
}

/// The layer that hands lines on.
pub(super) fn layer<S>(provider: &SdkLoggerProvider, settings: &Log) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    Lines(provider.logger("caribou")).with_filter(directives(settings).and(filter_fn(is_exported)))
}

/// Whether it is a line, and none of an export's own.
fn is_exported(metadata: &Metadata<'_>) -> bool {
    let owner = metadata.target().split("::").next().unwrap_or_default();
    let sends = |sender: &&str| owner == *sender || (*sender == "opentelemetry" && owner.starts_with(sender));
    metadata.is_event() && !SENDERS.iter().any(sends)
}

struct Lines(SdkLogger);

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut record = self.0.create_log_record();
        let (severity, text) = severity(*event.metadata().level());
        record.set_severity_number(severity);
        record.set_severity_text(text);
        record.set_target(event.metadata().target());
        event.record(&mut Fields(&mut record));
        self.0.emit(record);
    }
}

fn severity(level: Level) -> (Severity, &'static str) {
    match level {
        Level::ERROR => (Severity::Error, "ERROR"),
        Level::WARN => (Severity::Warn, "WARN"),
        Level::INFO => (Severity::Info, "INFO"),
        Level::DEBUG => (Severity::Debug, "DEBUG"),
        Level::TRACE => (Severity::Trace, "TRACE"),
    }
}

/// Takes over the fields of a line: its message becomes the body.
struct Fields<'r, R>(&'r mut R);

impl<R: opentelemetry::logs::LogRecord> Fields<'_, R> {
    fn put(&mut self, field: &Field, value: AnyValue) {
        match field.name() {
            "message" => self.0.set_body(value),
            name => self.0.add_attribute(name, value),
        }
    }
}

impl<R: opentelemetry::logs::LogRecord> Visit for Fields<'_, R> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.to_owned().into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        // What does not fit is told as text.
        let value = i64::try_from(value).map_or_else(|_| value.to_string().into(), AnyValue::from);
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use opentelemetry::InstrumentationScope;
    use opentelemetry_sdk::error::OTelSdkResult;
    use opentelemetry_sdk::logs::{LogProcessor, SdkLogRecord};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// Keeps what is handed on.
    #[derive(Clone, Debug, Default)]
    struct Kept(Arc<Mutex<Vec<SdkLogRecord>>>);

    impl LogProcessor for Kept {
        fn emit(&self, line: &mut SdkLogRecord, _: &InstrumentationScope) {
            self.0.lock().unwrap().push(line.clone());
        }

        fn force_flush(&self) -> OTelSdkResult {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_handed_on_with_its_fields_and_none_of_an_export() {
        let kept = Kept::default();
        let provider = SdkLoggerProvider::builder().with_log_processor(kept.clone()).build();
        let subscriber = tracing_subscriber::registry().with(vec![layer(&provider, &Log::default())]);
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(server = "s", tools = 3_u64, "a line of {}", "words");
            tracing::debug!("not shown by the log");
            tracing::info!(target: "hyper_util::client", "of an export");
            tracing::info!(target: "opentelemetry_sdk", "of an export");
        });
        let kept = kept.0.lock().unwrap();
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(kept[0].severity_text(), Some("WARN"));
        assert!(format!("{:?}", kept[0].body()).contains("a line of words"), "{:?}", kept[0]);
        let fields = format!("{:?}", kept[0].attributes_iter().collect::<Vec<_>>());
        assert!(fields.contains("server") && fields.contains("Int(3)"), "{fields}");
    }
}
