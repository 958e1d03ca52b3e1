//! The log on stderr. Stdout belongs to what a command was asked for.

use std::io::{IsTerminal, stderr};

use tracing::Subscriber;
use tracing_subscriber::filter::{EnvFilter, FilterExt, filter_fn};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::settings::{Log, LogFormat};

/// The layer that writes the log. Lines show the spans they stand in only when spans are made for an exporter
/// anyway: a span per call for the log's sake alone would cost every call.
pub(super) fn layer<S>(settings: &Log, spans_are_made: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let filter = directives(settings).and(filter_fn(move |metadata| spans_are_made || metadata.is_event()));
    let lines = fmt::layer().with_writer(stderr);
    match settings.format {
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
        LogFormat::Human => lines.with_ansi(stderr().is_terminal()).with_target(false).with_filter(filter).boxed(),
    }
}

/// `RUST_LOG` when it is set, else the setting. Both were checked or are mended here: a log must come up.
fn directives(settings: &Log) -> EnvFilter {
    let chosen = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    EnvFilter::builder().parse_lossy(chosen.unwrap_or_else(|| settings.level.clone()))
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

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
