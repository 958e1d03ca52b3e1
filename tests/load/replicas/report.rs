//! The figures, as a table for people and as JSON for programs, and the limits they are held against (durability.md §9,
//! forward hop, reset reach).

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::sample::Samples;
use crate::yardstick::Yardstick;

/// Keys that callers share.
const KEYS: f64 = 8.0;

/// A key is looked up at most once in so long.
const LOOK_UP: Duration = Duration::from_secs(5);

/// Everything a run found.
#[derive(Serialize)]
pub(super) struct Report {
    /// What the machine itself costs, before the calls and after them.
    pub(super) yardsticks: Vec<Yardstick>,
    pub(super) lines: Vec<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rows: Option<Rows>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resets: Option<Resets>,
}

/// Calls by both doors, so many at a time.
#[derive(Serialize)]
pub(super) struct Line {
    in_flight: u16,
    local: By,
    forwarded: By,
    /// CPU time of a bare call, of both of its processes; `None` = this program is not optimised.
    #[serde(skip_serializing_if = "Option::is_none")]
    bare_cpu_us: Option<f64>,
    /// Looks of the database into the table of sessions, and how long the windows were.
    lookups: u64,
    lasted_s: f64,
}

/// Calls by one door.
#[derive(Serialize)]
struct By {
    calls: usize,
    failed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_failure: Option<String>,
    p50_us: f64,
    p99_us: f64,
    /// CPU time of both replicas, their guards and the server, for each call.
    cpu_us: f64,
}

/// What sessions on record cost while nobody uses them.
#[derive(Serialize)]
pub(super) struct Rows {
    pub(super) rows: u32,
    /// Rows of sessions that were written meanwhile.
    pub(super) sessions_written: u64,
    /// Rows of replicas that were.
    pub(super) renewals: u64,
}

/// How long resets took until every replica had done them.
#[derive(Serialize)]
pub(super) struct Resets {
    resets: usize,
    /// Those that a replica has not confirmed in time.
    unconfirmed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_failure: Option<String>,
    p50_ms: f64,
    p99_ms: f64,
}

/// A figure that there is a limit for.
#[derive(Debug, Serialize)]
struct Limited {
    name: String,
    figure: f64,
    limit: f64,
    unit: &'static str,
    kept: bool,
}

/// The report with its verdicts.
#[derive(Serialize)]
pub(super) struct Told<'r> {
    #[serde(flatten)]
    report: &'r Report,
    limits: Vec<Limited>,
}

impl By {
    fn new((mut samples, cpu): (Samples, Duration)) -> Self {
        let [p50_us, p99_us] = samples.percentiles_us([0.5, 0.99]);
        let (calls, failed) = (samples.count(), samples.failures());
        let first_failure = samples.first_failure().map(str::to_owned);
        Self { calls, failed, first_failure, p50_us, p99_us, cpu_us: cpu.as_secs_f64() * 1e6 / calls.max(1) as f64 }
    }
}

impl Resets {
    pub(super) fn new(mut samples: Samples) -> Self {
        let [p50_us, p99_us] = samples.percentiles_us([0.5, 0.99]);
        let first_failure = samples.first_failure().map(str::to_owned);
        let (resets, unconfirmed) = (samples.count(), samples.failures());
        Self { resets, unconfirmed, first_failure, p50_ms: p50_us / 1e3, p99_ms: p99_us / 1e3 }
    }
}

impl Line {
    pub(super) fn new(
        in_flight: u16,
        local: (Samples, Duration),
        forwarded: (Samples, Duration),
        bare: Option<(u64, Duration)>,
        (lookups, lasted): (u64, Duration),
    ) -> Self {
        let (local, forwarded) = (By::new(local), By::new(forwarded));
        let bare_cpu_us = bare.map(|(calls, cpu)| cpu.as_secs_f64() * 1e6 / calls.max(1) as f64);
        Self { in_flight, local, forwarded, bare_cpu_us, lookups, lasted_s: lasted.as_secs_f64() }
    }

    /// CPU time of both sides of the hop.
    fn hop_cpu_us(&self) -> f64 {
        self.forwarded.cpu_us - self.local.cpu_us
    }

    /// Looks for each key in five seconds.
    fn lookups_each(&self) -> f64 {
        self.lookups as f64 / KEYS / (self.lasted_s / LOOK_UP.as_secs_f64()).max(1.0)
    }
}

impl Report {
    /// With its verdicts.
    pub(super) fn told(&self) -> Told<'_> {
        Told { report: self, limits: self.limited() }
    }

    /// Whether every limit is kept and every call was answered.
    pub(super) fn is_kept(&self) -> bool {
        let has_failed = self.lines.iter().any(|line| line.local.failed + line.forwarded.failed > 0);
        !has_failed && self.limited().iter().all(|limited| limited.kept)
    }

    fn limited(&self) -> Vec<Limited> {
        let mut limited = Vec::new();
        let mut at_most = |name: String, figure: f64, limit: f64, unit| {
            limited.push(Limited { name, figure, limit, unit, kept: figure <= limit });
        };
        for line in &self.lines {
            let at = line.in_flight;
            if at == 1 {
                at_most(
                    format!("p50 added by the hop at {at}"),
                    line.forwarded.p50_us - line.local.p50_us,
                    500.0,
                    "µs",
                );
            }
            at_most(format!("CPU of both sides of the hop at {at}"), line.hop_cpu_us(), 100.0, "µs");
            at_most(format!("looks of a key in 5 s at {at}"), line.lookups_each(), 1.0, "");
        }
        if let Some(rows) = &self.rows {
            at_most(format!("writes of {} sessions on record", rows.rows), rows.sessions_written as f64, 0.0, "");
        }
        if let Some(resets) = &self.resets {
            at_most("p99 until a reset is done everywhere".to_owned(), resets.p99_ms, 250.0, "ms");
            at_most("resets that were not confirmed".to_owned(), resets.unconfirmed as f64, 0.0, "");
        }
        limited
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>9}  {:10}{:>9}{:>9}{:>9}{:>14}{:>8}",
            "in flight", "door", "calls", "p50 µs", "p99 µs", "CPU µs each", "failed"
        )?;
        for line in &self.lines {
            for (door, by) in [("owner", &line.local), ("other", &line.forwarded)] {
                let By { calls, failed, p50_us, p99_us, cpu_us, .. } = by;
                writeln!(
                    f,
                    "{:>9}  {door:10}{calls:9}{p50_us:9.0}{p99_us:9.0}{cpu_us:14.1}{failed:8}",
                    line.in_flight
                )?;
                if let Some(failure) = &by.first_failure {
                    writeln!(f, "           first failure: {failure}")?;
                }
            }
            if let Some(bare) = line.bare_cpu_us {
                let times = line.hop_cpu_us() / bare;
                writeln!(f, "           a bare call costs {bare:.1} µs of CPU, the hop {times:.1} times as much")?;
            }
        }
        self.yardsticks.iter().try_for_each(|yardstick| writeln!(f, "{:11}{yardstick}", ""))?;
        if let Some(Rows { rows, sessions_written, renewals }) = &self.rows {
            writeln!(
                f,
                "\n{rows} sessions on record, nobody calls: {sessions_written} rows of sessions written, {renewals} of replicas"
            )?;
        }
        if let Some(Resets { resets, unconfirmed, first_failure, p50_ms, p99_ms }) = &self.resets {
            writeln!(
                f,
                "\n{resets} resets, done everywhere after: p50 {p50_ms:.0} ms, p99 {p99_ms:.0} ms; {unconfirmed} not confirmed"
            )?;
            if let Some(failure) = first_failure {
                writeln!(f, "first of them: {failure}")?;
            }
        }
        writeln!(f, "\nlimits")?;
        for Limited { name, figure, limit, unit, kept } in self.limited() {
            let verdict = if kept { "kept" } else { "EXCEEDED" };
            writeln!(f, "  {name:45}{figure:8.1} {unit:2}  at most {limit:5} {unit:2}  {verdict}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(us: u64, cpu_us: u64) -> (Samples, Duration) {
        let mut samples = Samples::default();
        (0..100).for_each(|_| samples.answered(Duration::from_micros(us)));
        (samples, Duration::from_micros(cpu_us * 100))
    }

    #[test]
    fn a_hop_costs_what_a_forwarded_call_costs_more() {
        let bare = Some((100, Duration::from_micros(4_500)));
        let line = |forwarded| Line::new(1, by(200, 150), forwarded, bare, (8, Duration::from_secs(10)));
        let rows = Some(Rows { rows: 10, sessions_written: 0, renewals: 3 });
        let resets = Some(Resets::new(by(80_000, 0).0));
        let report = Report { yardsticks: Vec::new(), lines: vec![line(by(600, 240))], rows, resets };
        let figures: Vec<f64> = report.limited().iter().map(|limited| limited.figure).collect();
        assert_eq!(figures, [400.0, 90.0, 0.5, 0.0, 80.0, 0.0], "{report}");
        assert!(report.is_kept());
        assert!(report.to_string().contains("costs 45.0 µs of CPU, the hop 2.0 times as much"), "{report}");
        let slow = Report { yardsticks: Vec::new(), lines: vec![line(by(701, 251))], rows: None, resets: None };
        let kept: Vec<bool> = slow.limited().iter().map(|limited| limited.kept).collect();
        assert_eq!((kept, slow.is_kept()), (vec![false, false, true], false), "{slow}");
    }
}
