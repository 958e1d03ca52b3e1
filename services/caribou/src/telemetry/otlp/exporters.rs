//! The exporter of each signal, in the form that its collector takes.

use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, MetricExporter, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};

use super::collector::Collector;
use super::sender::Sender;
use crate::settings::OtlpProtocol;
use crate::telemetry::TelemetryError;

/// Makes exporters. Must be called on the runtime that the process keeps.
#[derive(Default)]
pub(in crate::telemetry) struct Exporters {
    sender: Option<Sender>,
}

/// Builds one exporter: the three builders have the same methods and no type in common.
macro_rules! built {
    ($exporter:ident, $exporters:expr, $collector:expr) => {{
        let collector: &Collector = $collector;
        let builder = $exporter::builder();
        let built: Result<$exporter, ExporterBuildError> = match (collector.protocol, &collector.endpoint) {
            (OtlpProtocol::Grpc, None) => builder.with_tonic().build(),
            (OtlpProtocol::Grpc, Some(endpoint)) => builder.with_tonic().with_endpoint(endpoint).build(),
            (OtlpProtocol::HttpProtobuf, endpoint) => {
                let builder = builder.with_http().with_protocol(Protocol::HttpBinary);
                let builder = builder.with_http_client($exporters.sender()?);
                match endpoint {
                    Some(endpoint) => builder.with_endpoint(endpoint).build(),
                    None => builder.build(),
                }
            }
        };
        built.map_err(TelemetryError::from)
    }};
}

impl Exporters {
    /// Of spans.
    ///
    /// # Errors
    /// The address or a variable is wrong.
    pub(in crate::telemetry) fn of_spans(&mut self, to: &Collector) -> Result<SpanExporter, TelemetryError> {
        built!(SpanExporter, self, to)
    }

    /// Of metrics.
    ///
    /// # Errors
    /// The address or a variable is wrong.
    pub(in crate::telemetry) fn of_metrics(&mut self, to: &Collector) -> Result<MetricExporter, TelemetryError> {
        built!(MetricExporter, self, to)
    }

    /// Of log lines.
    ///
    /// # Errors
    /// The address or a variable is wrong.
    pub(in crate::telemetry) fn of_logs(&mut self, to: &Collector) -> Result<LogExporter, TelemetryError> {
        built!(LogExporter, self, to)
    }

    fn sender(&mut self) -> Result<Sender, TelemetryError> {
        if let Some(sender) = &self.sender {
            return Ok(sender.clone());
        }
        let sender = Sender::new().map_err(TelemetryError::Client)?;
        Ok(self.sender.insert(sender).clone())
    }
}
