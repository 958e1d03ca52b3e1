//! A collector of OTLP over HTTP within the test's own process, which keeps all that it is sent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use tokio::net::TcpListener;

/// Names and values, as texts.
pub type Attributes = BTreeMap<String, String>;

/// A span that was exported. Ids are in hexadecimal digits; an empty parent is none.
#[derive(Clone, Debug)]
pub struct SeenSpan {
    /// Its trace.
    pub trace: String,
    /// Its own id.
    pub id: String,
    /// The span that it is within.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// 1 internal, 2 server, 3 client.
    pub kind: i32,
    /// What it says.
    pub attributes: Attributes,
    /// Who sent it.
    pub resource: Attributes,
}

/// A metric of which a value was exported.
#[derive(Clone, Debug)]
pub struct SeenMetric {
    /// Its name.
    pub name: String,
    /// Who sent it.
    pub resource: Attributes,
}

/// A log line that was exported.
#[derive(Clone, Debug)]
pub struct SeenLine {
    /// Its words.
    pub body: String,
    /// Its trace.
    pub trace: String,
    /// What it says.
    pub attributes: Attributes,
    /// Who sent it.
    pub resource: Attributes,
}

/// What arrived.
#[derive(Debug, Default)]
struct Arrived {
    spans: Vec<SeenSpan>,
    metrics: Vec<SeenMetric>,
    lines: Vec<SeenLine>,
    bytes: Vec<Bytes>,
}

/// A collector that listens on loopback until it is dropped.
#[derive(Debug)]
pub struct Collector {
    url: String,
    arrived: Arc<Mutex<Arrived>>,
    task: tokio::task::JoinHandle<()>,
}

impl Collector {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let url = format!("http://{}", listener.local_addr().expect("a bound listener has an address"));
        let arrived = Arc::<Mutex<Arrived>>::default();
        let routes = Router::new().fallback(take).with_state(arrived.clone());
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.expect("serving goes on") });
        Self { url, arrived, task }
    }

    /// Its address, as `telemetry.otlp_endpoint` wants it.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn look<T>(&self, at: impl FnOnce(&Arrived) -> T) -> T {
        at(&self.arrived.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<SeenSpan> {
        self.look(|arrived| arrived.spans.clone())
    }

    /// All metrics so far.
    pub fn metrics(&self) -> Vec<SeenMetric> {
        self.look(|arrived| arrived.metrics.clone())
    }

    /// All log lines so far.
    pub fn lines(&self) -> Vec<SeenLine> {
        self.look(|arrived| arrived.lines.clone())
    }

    /// Whether `text` stands anywhere in what was sent.
    pub fn was_told(&self, text: &str) -> bool {
        let holds = |bytes: &Bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        self.look(|arrived| arrived.bytes.iter().any(holds))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(State(arrived): State<Arc<Mutex<Arrived>>>, path: Uri, body: Bytes) -> StatusCode {
    let mut arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = match path.path() {
        "/v1/traces" => ExportTraceServiceRequest::decode(&*body).map(|sent| arrived.spans.extend(spans(sent))).is_ok(),
        "/v1/metrics" => {
            ExportMetricsServiceRequest::decode(&*body).map(|sent| arrived.metrics.extend(metrics(sent))).is_ok()
        }
        "/v1/logs" => ExportLogsServiceRequest::decode(&*body).map(|sent| arrived.lines.extend(lines(sent))).is_ok(),
        _ => false,
    };
    arrived.bytes.push(body);
    if is_known { StatusCode::OK } else { StatusCode::BAD_REQUEST }
}

fn spans(sent: ExportTraceServiceRequest) -> Vec<SeenSpan> {
    let mut seen = Vec::new();
    for of_process in sent.resource_spans {
        let resource = resource(of_process.resource);
        seen.extend(of_process.scope_spans.into_iter().flat_map(|scope| scope.spans).map(|span| SeenSpan {
            trace: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
            name: span.name,
            kind: span.kind,
            attributes: attributes(span.attributes),
            resource: resource.clone(),
        }));
    }
    seen
}

fn metrics(sent: ExportMetricsServiceRequest) -> Vec<SeenMetric> {
    let mut seen = Vec::new();
    for of_process in sent.resource_metrics {
        let resource = resource(of_process.resource);
        let named = of_process.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
        seen.extend(named.map(|metric| SeenMetric { name: metric.name, resource: resource.clone() }));
    }
    seen
}

fn lines(sent: ExportLogsServiceRequest) -> Vec<SeenLine> {
    let mut seen = Vec::new();
    for of_process in sent.resource_logs {
        let resource = resource(of_process.resource);
        let records = of_process.scope_logs.into_iter().flat_map(|scope| scope.log_records);
        seen.extend(records.map(|line| SeenLine {
            body: line.body.map(text).unwrap_or_default(),
            trace: hex(&line.trace_id),
            attributes: attributes(line.attributes),
            resource: resource.clone(),
        }));
    }
    seen
}

fn resource(resource: Option<Resource>) -> Attributes {
    attributes(resource.unwrap_or_default().attributes)
}

fn attributes(pairs: Vec<KeyValue>) -> Attributes {
    pairs.into_iter().map(|pair| (pair.key, pair.value.map(text).unwrap_or_default())).collect()
}

fn text(value: AnyValue) -> String {
    match value.value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(is_so)) => is_so.to_string(),
        other => format!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
