//! One context: where it is read, and where it is written.

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::Context;
use opentelemetry::propagation::Extractor;
use opentelemetry::trace::TraceContextExt as _;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// What a context is written as, in any carrier.
pub const KEYS: [&str; 2] = ["traceparent", "tracestate"];

/// The longest value that is read: ten times what a `traceparent` takes, and twice what everybody must pass of a
/// `tracestate`.
const LONGEST: usize = 1_024;

/// A context as it stands on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    values: [Option<String>; 2],
}

/// The context that these headers bring; several `tracestate` are one list.
pub fn of_headers(headers: &HeaderMap) -> TraceContext {
    TraceContext::of(|key| {
        let values = headers.get_all(key).iter().filter_map(|value| value.to_str().ok());
        values.map(str::to_owned).reduce(|all, next| format!("{all},{next}"))
    })
}

impl TraceContext {
    /// The context that `get` finds under [`KEYS`].
    pub fn of(get: impl Fn(&str) -> Option<String>) -> Self {
        Self { values: KEYS.map(|key| get(key).filter(|value| value.len() <= LONGEST)) }
    }

    /// What is told by requests that are made within `span`; `None` when nobody exports it.
    pub fn within(span: &Span) -> Option<Self> {
        if span.is_disabled() {
            return None;
        }
        let mut told = HashMap::new();
        let context = span.context();
        opentelemetry::global::get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut told));
        let told = Self { values: KEYS.map(|key| told.remove(key).filter(|value| !value.is_empty())) };
        told.is_some().then_some(told)
    }

    /// Whether there is one.
    pub fn is_some(&self) -> bool {
        self.values[0].is_some()
    }

    /// Makes `span`, which nobody has entered yet, a child of the span that is named here, if one is.
    pub fn becomes_parent_of(&self, span: &Span) {
        if span.is_disabled() || !self.is_some() {
            return;
        }
        let parent = opentelemetry::global::get_text_map_propagator(|propagator| {
            propagator.extract_with_context(&Context::new(), self)
        });
        if parent.span().span_context().is_valid() {
            // Refused only for a span that runs already; it then stays what it is.
            let _ = span.set_parent(parent);
        }
    }

    /// Name and value, for any carrier.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        KEYS.into_iter().zip(&self.values).filter_map(|(key, value)| Some((key, value.as_deref()?)))
    }

    /// Writes it among these headers, in place of any other.
    pub fn put_into(&self, headers: &mut HeaderMap) {
        for key in KEYS {
            headers.remove(key);
        }
        for (key, value) in self.members() {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(key), value);
            }
        }
    }
}

impl Extractor for TraceContext {
    fn get(&self, key: &str) -> Option<&str> {
        self.members().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    fn keys(&self) -> Vec<&str> {
        self.members().map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn said(parent: &str) -> TraceContext {
        TraceContext::of(|key| (key == "traceparent").then(|| parent.to_owned()))
    }

    /// What is told within a span whose caller said this, when spans are exported.
    fn told_after(said: &TraceContext) -> String {
        opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
        let provider = SdkTracerProvider::builder().build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let span = tracing::info_span!("asked");
            said.becomes_parent_of(&span);
            TraceContext::within(&span).expect("spans are made").values[0].clone().expect("a traceparent")
        })
    }

    #[test]
    fn a_span_goes_on_in_the_trace_of_its_caller_under_a_name_of_its_own() {
        let told = told_after(&said(PARENT));
        let (trace, span) = (&PARENT[3..35], &PARENT[36..52]);
        assert!(told.starts_with(&format!("00-{trace}-")) && told.ends_with("-01"), "{told}");
        assert!(!told.contains(span), "{told}");
    }

    #[test]
    fn a_context_that_cannot_be_read_counts_as_none() {
        let long = format!("{PARENT}{}", "0".repeat(LONGEST));
        for odd in ["", "00-zz-00-01", "00-00000000000000000000000000000000-0000000000000000-01", &long] {
            let told = told_after(&said(odd));
            assert!(told.len() == PARENT.len() && !told.contains(&PARENT[3..35]), "{odd}: {told}");
        }
    }

    #[test]
    fn nothing_is_told_when_nobody_exports_spans() {
        let span = tracing::info_span!("asked");
        said(PARENT).becomes_parent_of(&span);
        assert_eq!(TraceContext::within(&span), None);
    }

    #[test]
    fn headers_carry_it_and_lists_are_joined() {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", HeaderValue::from_static(PARENT));
        headers.append("tracestate", HeaderValue::from_static("a=1"));
        headers.append("tracestate", HeaderValue::from_static("b=2"));
        let read = of_headers(&headers);
        let expected = [("traceparent", PARENT), ("tracestate", "a=1,b=2")];
        assert_eq!(read.members().collect::<Vec<_>>(), expected);
        let mut written = HeaderMap::new();
        written.insert("traceparent", HeaderValue::from_static("of another"));
        read.put_into(&mut written);
        assert_eq!(of_headers(&written), read);
    }
}
