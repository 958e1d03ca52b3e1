//! The log on stderr. Stdout belongs to what a command was asked for.
//!
//! Lines for programs name the trace and the span that they stand in, when spans are exported.

use std::io::{IsTerminal, stderr};

use opentelemetry::trace::TraceContextExt as _;
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, FilterExt};
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Context, Filter, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::settings::{Log, LogFormat};

/// The layer that writes the log. Lines show the spans they stand in only when spans are made for an exporter
/// anyway: a span per call for the log's sake alone would cost every call.
pub(super) fn layer<S>(settings: &Log, spans_are_made: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let filter = filter(settings, spans_are_made);
    let lines = fmt::layer().with_writer(stderr);
    match settings.format {
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true);
            lines.map_event_format(|format| Placed { format, spans_are_made }).with_filter(filter).boxed()
        }
        LogFormat::Human => lines.with_ansi(stderr().is_terminal()).with_target(false).with_filter(filter).boxed(),
    }
}

/// A format of JSON objects, with the place of each line in its trace behind everything else.
struct Placed<F> {
    format: F,
    spans_are_made: bool,
}

impl<S, N, F> FormatEvent<S, N> for Placed<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> std::fmt::Result {
        let place = self.spans_are_made.then(|| opentelemetry::Context::current().span().span_context().clone());
        let Some(place) = place.filter(|place| place.is_valid()) else {
            return self.format.format_event(context, to, event);
        };
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        match line.trim_end().strip_suffix('}') {
            Some(open) => {
                let (trace, span) = (place.trace_id(), place.span_id());
                writeln!(to, r#"{open},"trace_id":"{trace}","span_id":"{span}"}}"#)
            }
            None => to.write_str(&line),
        }
    }
}

/// What is written.
fn filter<S>(settings: &Log, spans_are_made: bool) -> impl Filter<S> + use<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    directives(settings).and(Wanted { spans_are_made })
}

/// Lines, and spans if they are made anyway.
struct Wanted {
    spans_are_made: bool,
}

impl<S> Filter<S> for Wanted {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.spans_are_made || metadata.is_event()
    }

    /// A span is switched off at its call site for good. A line is asked about each time: the answer to a library that
    /// only asks whether it may write (sqlx does, for each statement) would otherwise count for the next line of the same
    /// thread, which would be lost.
    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.spans_are_made || metadata.is_event() { Interest::sometimes() } else { Interest::never() }
    }
}

/// `RUST_LOG` when it is set, else the setting. Both were checked or are mended here: a log must come up.
pub(super) fn directives(settings: &Log) -> EnvFilter {
    let chosen = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    EnvFilter::builder().parse_lossy(chosen.unwrap_or_else(|| settings.level.clone()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// Counts lines.
    struct Lines(Arc<AtomicUsize>);

    impl<S: Subscriber> Layer<S> for Lines {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_line_is_written_also_after_somebody_has_asked_in_vain_whether_to_write_one() {
        let lines: Arc<AtomicUsize> = Arc::default();
        let counted = Lines(lines.clone()).with_filter(filter(&Log::default(), false));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(counted), || {
            for written in 1..=3 {
                assert!(!tracing::enabled!(tracing::Level::DEBUG));
                tracing::info!("a line");
                assert_eq!(lines.load(Ordering::SeqCst), written);
            }
        });
    }

    fn spans_are_enabled(spans_are_made: bool) -> bool {
        let layers = vec![layer(&Log::default(), spans_are_made)];
        let subscriber = tracing_subscriber::registry().with(layers);
        tracing::subscriber::with_default(subscriber, || {
            assert!(tracing::event_enabled!(tracing::Level::INFO));
            assert!(!tracing::event_enabled!(tracing::Level::DEBUG));
            !tracing::info_span!("call").is_disabled()
        })
    }

    #[test]
    fn the_log_alone_wants_lines_and_no_spans() {
        assert!(!spans_are_enabled(false));
        assert!(spans_are_enabled(true));
    }

    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_for_programs_names_its_place_in_its_trace() {
        let kept = Kept::default();
        let writer = kept.clone();
        let lines = fmt::layer().with_writer(move || writer.clone()).json().flatten_event(true);
        let lines = lines.map_event_format(|format| Placed { format, spans_are_made: true });
        let tracer = SdkTracerProvider::builder().build().tracer("test");
        let subscriber = tracing_subscriber::registry().with(tracing_opentelemetry::layer().with_tracer(tracer));
        tracing::subscriber::with_default(subscriber.with(lines), || {
            tracing::info!("outside");
            tracing::info_span!("call").in_scope(|| tracing::info!(tools = 3, "inside"));
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&lines[0]["message"], lines[0].get("trace_id")), (&"outside".into(), None));
        let inside = &lines[1];
        assert_eq!((&inside["message"], &inside["tools"]), (&"inside".into(), &3.into()));
        let length = |key: &str| inside[key].as_str().map(str::len);
        assert_eq!((length("trace_id"), length("span_id")), (Some(32), Some(16)), "{inside}");
    }
}
