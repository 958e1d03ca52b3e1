//! The reports that the demo server writes in the background: each takes a while, asks one question in the middle, and
//! can be cancelled. All of it follows from the clock and from what was answered; nothing runs meanwhile.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a report takes until it asks, and from the answer to its end.
const GATHER: Duration = Duration::from_secs(2);
const WRITE: Duration = Duration::from_secs(1);

/// When one should look again at a report that goes on.
const LOOK_SECONDS: f64 = 0.5;

/// Reports that are remembered: a demo must not fill a memory.
const MAX_REPORTS: usize = 100;

/// All reports of one process.
#[derive(Default)]
pub(super) struct Reports {
    by_name: HashMap<String, Report>,
    count: u64,
}

struct Report {
    topic: String,
    begun: Instant,
    /// The format that was chosen, and when.
    chosen: Option<(String, Instant)>,
    is_cancelled: bool,
}

impl Reports {
    /// Begins a report. `None` = there are too many.
    pub(super) fn submit(&mut self, topic: String, now: Instant) -> Option<Value> {
        if self.by_name.len() >= MAX_REPORTS {
            return None;
        }
        self.count += 1;
        // Each thread has a process of its own, and their names must differ.
        let name = format!("report-{}-{}", std::process::id(), self.count);
        self.by_name.insert(name.clone(), Report { topic, begun: now, chosen: None, is_cancelled: false });
        Some(json!({ "task_id": name, "status": "running" }))
    }

    /// How a report is.
    pub(super) fn status(&self, name: &str, now: Instant) -> Value {
        let mut state = self.by_name.get(name).map_or_else(
            || json!({ "status": "failed", "error_code": "task_not_found", "error": "there is no such report" }),
            |report| report.status(now),
        );
        state["task_id"] = name.into();
        state
    }

    /// Gives up a report, if it is not ready.
    pub(super) fn cancel(&mut self, name: &str, now: Instant) -> Value {
        if let Some(report) = self.by_name.get_mut(name) {
            report.is_cancelled |= report.status(now)["status"] != "completed";
        }
        self.status(name, now)
    }

    /// Takes the answer to the question of a report; a second one changes nothing. Whether there is such a report.
    pub(super) fn answer(&mut self, name: &str, format: &str, now: Instant) -> bool {
        let Some(report) = self.by_name.get_mut(name) else { return false };
        report.chosen.get_or_insert_with(|| (format.to_owned(), now));
        true
    }
}

impl Report {
    fn status(&self, now: Instant) -> Value {
        let since = |then: &Instant| now.saturating_duration_since(*then);
        match &self.chosen {
            _ if self.is_cancelled => json!({ "status": "cancelled" }),
            Some((format, chosen)) if since(chosen) >= WRITE => {
                json!({ "status": "completed", "result": self.text(format) })
            }
            None if since(&self.begun) >= GATHER => json!({ "status": "input_required", "input_required": {
                "prompt": format!("Which format should the report on {} have?", self.topic),
                "schema": {
                    "type": "object",
                    "properties": { "format": { "type": "string", "enum": ["text", "table"] } },
                    "required": ["format"],
                },
            } }),
            _ => json!({ "status": "running", "poll_after_seconds": LOOK_SECONDS }),
        }
    }

    fn text(&self, format: &str) -> String {
        format!("A {format} on {}: it runs in the background, asks, and ends.", self.topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_asks_in_the_middle_and_is_written_after_the_answer() {
        let begun = Instant::now();
        let mut reports = Reports::default();
        let name = reports.submit("reindeer".to_owned(), begun).unwrap()["task_id"].as_str().unwrap().to_owned();
        assert_eq!(reports.status(&name, begun)["status"], "running");
        let asked = begun + GATHER;
        assert_eq!(reports.status(&name, asked)["input_required"]["schema"]["required"], json!(["format"]));
        assert!(reports.answer(&name, "table", asked) && reports.answer(&name, "text", asked));
        assert_eq!(reports.status(&name, asked)["status"], "running");
        let done = reports.status(&name, asked + WRITE);
        assert_eq!(done["status"], "completed");
        assert!(done["result"].as_str().unwrap().starts_with("A table on reindeer"), "the first answer counts: {done}");
        assert_eq!(reports.cancel(&name, asked + WRITE)["status"], "completed");
    }

    #[test]
    fn a_report_that_goes_on_can_be_cancelled_and_one_that_is_none_is_not_found() {
        let begun = Instant::now();
        let mut reports = Reports::default();
        let name = reports.submit("ice".to_owned(), begun).unwrap()["task_id"].as_str().unwrap().to_owned();
        assert_eq!(reports.cancel(&name, begun)["status"], "cancelled");
        assert_eq!(reports.status("other", begun)["error_code"], "task_not_found");
        assert!(!reports.answer("other", "text", begun));
        for _ in 1..MAX_REPORTS {
            assert!(reports.submit("more".to_owned(), begun).is_some());
        }
        assert!(reports.submit("too many".to_owned(), begun).is_none());
    }
}
