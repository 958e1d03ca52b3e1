//! Settings of what is exported over OTLP. Off until a collector is named.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// Where spans, metrics and log lines are exported to, over OTLP. Variables of the OpenTelemetry specification
/// (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, …) hold too; what is set here
/// counts more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetrySettings {
    /// The address of a collector, such as `http://collector:4317`; over HTTP the paths `/v1/traces`, `/v1/metrics` and
    /// `/v1/logs` are put behind it. When absent: what `OTEL_EXPORTER_OTLP_ENDPOINT` says; without both nothing is
    /// exported. What the collector wants to be shown belongs into `OTEL_EXPORTER_OTLP_HEADERS`, never here.
    #[garde(inner(custom(address)))]
    pub otlp_endpoint: Option<String>,
    /// How it is spoken to. When absent: what `OTEL_EXPORTER_OTLP_PROTOCOL` says, else `grpc`.
    #[garde(skip)]
    pub otlp_protocol: Option<OtlpProtocol>,
    /// Export spans.
    #[garde(skip)]
    pub traces: bool,
    /// Export metrics. They are served on `/metrics` either way.
    #[garde(skip)]
    pub metrics: bool,
    /// Export the lines of the log. They are written to stderr either way.
    #[garde(skip)]
    pub logs: bool,
}

/// How a collector is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OtlpProtocol {
    /// gRPC, mostly on port 4317.
    #[serde(rename = "grpc")]
    Grpc,
    /// Protobuf over HTTP, mostly on port 4318.
    #[serde(rename = "http/protobuf")]
    HttpProtobuf,
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self { otlp_endpoint: None, otlp_protocol: None, traces: true, metrics: true, logs: true }
    }
}

/// Settings are shown, so nothing secret may stand in an address.
fn address(text: &str, _: &()) -> garde::Result {
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    match url {
        None => Err(garde::Error::new("not an address that starts with http:// or https://")),
        Some(url) if !url.username().is_empty() || url.password().is_some() => {
            Err(garde::Error::new("an address without user and password: set OTEL_EXPORTER_OTLP_HEADERS instead"))
        }
        Some(url) if url.query().is_some() || url.fragment().is_some() => {
            Err(garde::Error::new("an address that ends with its path"))
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_a_host_and_nothing_secret() {
        for fine in ["http://collector:4317", "https://collector.example/otlp/"] {
            assert!(address(fine, &()).is_ok(), "{fine}");
        }
        for wrong in ["collector:4317", "http://", "http://ann:hunter2@collector", "grpc://collector", "http://c/?k=v"]
        {
            let refused = address(wrong, &()).unwrap_err();
            assert!(!refused.to_string().contains("hunter2"), "{refused}");
        }
    }
}
