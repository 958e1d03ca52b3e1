//! The figures, as a table for people and as JSON for programs, and the limits they are held against (durability.md §9).

use std::fmt;

use serde::Serialize;

use super::claims::Claims;
use super::followed::Followed;

/// Everything a run found; what was not measured is left out.
#[derive(Default, Serialize)]
pub(super) struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) postgres: Option<Claims>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sqlite: Option<Claims>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) followed: Option<Followed>,
}

/// The report with its verdicts.
#[derive(Serialize)]
pub(super) struct Told<'r> {
    #[serde(flatten)]
    report: &'r Report,
    limits: Vec<Limited>,
}

/// A figure that there is a limit for.
#[derive(Debug, Serialize)]
struct Limited {
    name: &'static str,
    figure: f64,
    limit: f64,
    unit: &'static str,
    /// Whether the figure must not be smaller, instead of not greater.
    at_least: bool,
    kept: bool,
}

impl Limited {
    fn at_least(name: &'static str, figure: f64, limit: f64, unit: &'static str) -> Self {
        Self { name, figure, limit, unit, at_least: true, kept: figure >= limit }
    }

    fn at_most(name: &'static str, figure: f64, limit: f64, unit: &'static str) -> Self {
        Self { name, figure, limit, unit, at_least: false, kept: figure <= limit }
    }
}

impl Report {
    /// With its verdicts.
    pub(super) fn told(&self) -> Told<'_> {
        Told { report: self, limits: self.limited() }
    }

    fn limited(&self) -> Vec<Limited> {
        let mut limited = Vec::new();
        if let Some(claims) = &self.postgres {
            let name = "claims and settles for a core of PostgreSQL";
            limited.push(Limited::at_least(name, claims.per_core(), 20_000.0, "/s"));
        }
        if let Some(claims) = &self.sqlite {
            let name = "claims and settles for a core with SQLite";
            limited.push(Limited::at_least(name, claims.per_core(), 10_000.0, "/s"));
        }
        if let Some(followed) = &self.followed {
            limited.push(Limited::at_least("polls end to end", followed.polls_per_second(), 3_000.0, "/s"));
            limited.push(Limited::at_most("p99 from due to polled, few tasks", followed.late_p99_ms, 1_200.0, "ms"));
        }
        limited
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (database, claims) in [("PostgreSQL", &self.postgres), ("SQLite", &self.sqlite)] {
            if let Some(claims) = claims {
                let Claims { rows, polls, lasted_s, cpu_s } = claims;
                let (wall, each) = (*polls as f64 / lasted_s, cpu_s * 1e6 / *polls as f64);
                writeln!(f, "\nclaims and settles by 64, {database} with {rows} tasks")?;
                writeln!(f, "  {polls} in {lasted_s:.1} s: {wall:.0}/s, CPU {each:.1} µs each")?;
            }
        }
        if let Some(followed) = &self.followed {
            let Followed { tasks, polls, lasted_s, cpu_us_per_poll, few_polls, late_p50_ms, late_p99_ms } = followed;
            let (all, cpu) = (followed.polls_per_second(), cpu_us_per_poll);
            writeln!(f, "\na Caribou that polls once a second")?;
            writeln!(f, "  {tasks} tasks: {polls} polls in {lasted_s:.1} s, {all:.0}/s")?;
            write!(f, "  CPU each, µs: caribou {:.0}, PostgreSQL {:.0}, ", cpu.caribou, cpu.postgres)?;
            writeln!(f, "server of the tasks {:.0}", cpu.server)?;
            writeln!(
                f,
                "  few tasks: {few_polls} polls, late by {late_p50_ms:.1} ms (p50), {late_p99_ms:.1} ms (p99)"
            )?;
        }
        writeln!(f, "\nlimits")?;
        for Limited { name, figure, limit, unit, at_least, kept } in self.limited() {
            let bound = if at_least { "at least" } else { "at most" };
            let verdict = if kept { "kept" } else { "MISSED" };
            writeln!(f, "  {name:45}{figure:8.0} {unit:2}  {bound:8} {limit:5} {unit:2}  {verdict}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(polls: u64) -> Option<Claims> {
        Some(Claims { rows: 1, polls, lasted_s: 2.0, cpu_s: 1.0 })
    }

    #[test]
    fn a_limit_is_kept_or_missed_by_cpu_time_and_what_was_not_measured_has_none() {
        assert!(Report::default().limited().is_empty());
        let report = Report { postgres: claims(20_000), sqlite: claims(9_999), ..Report::default() };
        let kept: Vec<bool> = report.limited().iter().map(|limited| limited.kept).collect();
        assert_eq!(kept, [true, false], "{report}");
        assert_eq!(serde_json::to_value(report.told()).expect("JSON")["limits"][1]["figure"], 9_999.0);
    }
}
