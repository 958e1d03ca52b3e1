//! How what was found is told: a line for each thing and below it what to do next, or one JSON object.

use std::time::Duration;

use serde::Serialize;

use super::examine::{Report, is_well};
use super::finding::{Finding, State};
use crate::commands::output;

/// The object that `--json` prints.
#[derive(Serialize)]
struct Whole<'r> {
    /// Whether nothing failed.
    ok: bool,
    /// The version of this program.
    version: &'static str,
    /// Everything that was found.
    checks: Vec<Line<'r>>,
}

#[derive(Serialize)]
struct Line<'r> {
    /// The check.
    check: &'static str,
    #[serde(flatten)]
    finding: &'r Finding,
    /// How long the check took, with all its lines.
    took_ms: u64,
}

/// All of it as one line of JSON.
///
/// # Errors
/// Never in practice: everything in it is text.
pub(super) fn json(reports: &[Report]) -> serde_json::Result<String> {
    let checks = lines(reports).map(|(check, finding, took)| {
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        Line { check, finding, took_ms }
    });
    serde_json::to_string(&Whole { ok: is_well(reports), version: env!("CARGO_PKG_VERSION"), checks: checks.collect() })
}

/// All of it for people, in lines.
pub(super) fn text(reports: &[Report]) -> Vec<String> {
    let mut shown = Vec::new();
    for (check, Finding { state, subject, what, mend }, _) in lines(reports) {
        let subject = subject.as_ref().map_or_else(String::new, |subject| format!("{subject}: "));
        let what = output::printable(&format!("{subject}{what}"));
        shown.push(format!("{:<8} {check:<14} {what}", state.as_str()));
        if let Some(mend) = mend.as_ref().filter(|mend| !mend.is_empty()) {
            shown.push(format!("{:<8} {:<14} -> {}", "", "", output::printable(mend)));
        }
    }
    let count = |state| lines(reports).filter(|(_, finding, _)| finding.state == state).count();
    let [failed, warnings] = [State::Failed, State::Warning].map(count);
    let well = if failed > 0 { "something does not work" } else { "all that was looked at works" };
    shown.push(format!("{well}; failed: {failed}, warnings: {warnings}, skipped: {}", count(State::Skipped)));
    shown
}

fn lines(reports: &[Report]) -> impl Iterator<Item = (&'static str, &Finding, Duration)> {
    reports.iter().flat_map(|report| report.findings.iter().map(|finding| (report.check, finding, report.took)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_has_its_line_and_what_to_do_stands_below_it() {
        let reports = [Report {
            check: "redis",
            findings: vec![Finding::failed("away\x1b[2J", "start it").about("cache"), Finding::ok("fine")],
            took: Duration::from_millis(7),
        }];
        let shown = text(&reports);
        assert_eq!(shown[0], "failed   redis          cache: away [2J");
        assert_eq!(shown[1].trim(), "-> start it");
        assert_eq!(shown[3], "something does not work; failed: 1, warnings: 0, skipped: 0");
        let json: serde_json::Value = serde_json::from_str(&json(&reports).unwrap()).unwrap();
        let first = serde_json::json!({"check": "redis", "state": "failed", "subject": "cache", "what": "away\u{1b}[2J",
            "mend": "start it", "took_ms": 7});
        assert_eq!((&json["ok"], &json["checks"][0]), (&false.into(), &first));
    }
}
