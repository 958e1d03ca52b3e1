//! The log on stderr. Stdout belongs to what a command was asked for.

use std::io::{IsTerminal, stderr};

use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, FilterExt};
use tracing_subscriber::fmt;
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
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
        LogFormat::Human => lines.with_ansi(stderr().is_terminal()).with_target(false).with_filter(filter).boxed(),
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
fn directives(settings: &Log) -> EnvFilter {
    let chosen = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    EnvFilter::builder().parse_lossy(chosen.unwrap_or_else(|| settings.level.clone()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tracing::Event;
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
}
