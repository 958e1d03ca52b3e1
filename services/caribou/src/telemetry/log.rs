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
