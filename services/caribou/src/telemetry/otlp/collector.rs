//! Where one signal goes: the settings first, then the variables of the OpenTelemetry specification.

use crate::settings::{OtlpProtocol, TelemetrySettings};
use crate::telemetry::TelemetryError;

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::telemetry) enum Signal {
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
    /// Log lines.
    Logs,
}

impl Signal {
    /// Its word in variables, in capitals.
    fn variable(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
            Self::Logs => "LOGS",
        }
    }

    /// Its word as a label, and the end of its path over HTTP.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }
}

/// Where a signal goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::telemetry) struct Collector {
    /// Its address as the settings give it, with the path of the signal over HTTP; `None` = a variable says, which the
    /// exporter reads itself.
    pub(super) endpoint: Option<String>,
    pub(super) protocol: OtlpProtocol,
}

impl Collector {
    /// Where `signal` goes; `None` = nowhere.
    ///
    /// # Errors
    /// A variable names a protocol that we do not speak.
    pub(in crate::telemetry) fn of(
        signal: Signal,
        settings: &TelemetrySettings,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, TelemetryError> {
        let variable =
            |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let is_wanted = match signal {
            Signal::Traces => settings.traces,
            Signal::Metrics => settings.metrics,
            Signal::Logs => settings.logs,
        };
        let is_disabled = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let exporters = variable(&format!("OTEL_{}_EXPORTER", signal.variable()));
        let is_otlp = exporters.is_none_or(|list| list.split(',').any(|name| name.trim() == "otlp"));
        let of_signal = |what: &str| format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.variable());
        let named = || variable(&of_signal("ENDPOINT")).or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let is_named = settings.otlp_endpoint.is_some() || named().is_some();
        if !is_wanted || is_disabled || !is_otlp || !is_named {
            return Ok(None);
        }
        let said = || [of_signal("PROTOCOL"), "OTEL_EXPORTER_OTLP_PROTOCOL".to_owned()];
        let protocol = match settings.otlp_protocol {
            Some(protocol) => protocol,
            None => match said().into_iter().find_map(|name| Some((variable(&name)?, name))) {
                Some((value, name)) => protocol_named(&value).ok_or(TelemetryError::Protocol(name))?,
                None => OtlpProtocol::Grpc,
            },
        };
        let endpoint = settings.otlp_endpoint.as_deref().map(|endpoint| match protocol {
            OtlpProtocol::Grpc => endpoint.to_owned(),
            OtlpProtocol::HttpProtobuf => format!("{}/v1/{}", endpoint.trim_end_matches('/'), signal.word()),
        });
        Ok(Some(Self { endpoint, protocol }))
    }
}

fn protocol_named(value: &str) -> Option<OtlpProtocol> {
    match value.to_ascii_lowercase().as_str() {
        "grpc" => Some(OtlpProtocol::Grpc),
        "http/protobuf" => Some(OtlpProtocol::HttpProtobuf),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes(signal: Signal, settings: &TelemetrySettings, variables: &[(&str, &str)]) -> Option<Collector> {
        let variable = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Collector::of(signal, settings, &variable).unwrap()
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317");

    #[test]
    fn nothing_goes_anywhere_until_a_collector_is_named() {
        let settings = TelemetrySettings::default();
        for signal in [Signal::Traces, Signal::Metrics, Signal::Logs] {
            assert_eq!(goes(signal, &settings, &[]), None);
            assert_eq!(goes(signal, &settings, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), None);
            let grpc = Collector { endpoint: None, protocol: OtlpProtocol::Grpc };
            assert_eq!(goes(signal, &settings, &[ENDPOINT]), Some(grpc));
        }
        let alone = [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector:4317")];
        assert!(goes(Signal::Traces, &settings, &alone).is_some());
        assert_eq!(goes(Signal::Logs, &settings, &alone), None);
    }

    #[test]
    fn variables_and_settings_switch_signals_off() {
        let settings = TelemetrySettings::default();
        assert_eq!(goes(Signal::Traces, &settings, &[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")]), None);
        assert_eq!(goes(Signal::Logs, &settings, &[ENDPOINT, ("OTEL_LOGS_EXPORTER", "none")]), None);
        assert!(goes(Signal::Traces, &settings, &[ENDPOINT, ("OTEL_LOGS_EXPORTER", "none")]).is_some());
        assert!(goes(Signal::Metrics, &settings, &[ENDPOINT, ("OTEL_METRICS_EXPORTER", "prometheus, otlp")]).is_some());
        let settings = TelemetrySettings { metrics: false, ..settings };
        assert_eq!(goes(Signal::Metrics, &settings, &[ENDPOINT]), None);
    }

    #[test]
    fn settings_count_more_than_variables_and_know_the_paths_of_http() {
        let settings = TelemetrySettings { otlp_endpoint: Some("http://ours:4318/".to_owned()), ..Default::default() };
        let http = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
        let goes_to = |variables: &[_]| goes(Signal::Logs, &settings, variables).unwrap().endpoint;
        assert_eq!(goes_to(&[ENDPOINT, http]).as_deref(), Some("http://ours:4318/v1/logs"));
        assert_eq!(
            goes_to(&[http, ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc")]).as_deref(),
            Some("http://ours:4318/")
        );
        let settings = TelemetrySettings { otlp_protocol: Some(OtlpProtocol::Grpc), ..settings };
        assert_eq!(goes(Signal::Traces, &settings, &[http]).unwrap().protocol, OtlpProtocol::Grpc);
    }

    #[test]
    fn a_protocol_that_nobody_speaks_is_refused_by_the_name_of_its_variable() {
        let variable = |name: &str| match name {
            "OTEL_EXPORTER_OTLP_PROTOCOL" => Some("carrier-pigeon".to_owned()),
            name => (name == ENDPOINT.0).then(|| ENDPOINT.1.to_owned()),
        };
        let refused = Collector::of(Signal::Traces, &TelemetrySettings::default(), &variable).unwrap_err();
        assert!(refused.to_string().contains("OTEL_EXPORTER_OTLP_PROTOCOL"), "{refused}");
    }
}
