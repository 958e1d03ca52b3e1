//! What a run found, as a table for people and as JSON for programs.
//!
//! Owns the figures, their units and the limits they are held against. Figures that were not taken are left out.
//! Keeps no invariant.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::call::Path;
use crate::proc::{Cpu, Resident};
use crate::sample::Samples;
use crate::sessions::Sessions;
use crate::yardstick::Yardstick;

/// Everything a run found.
#[derive(Default, Serialize)]
pub(crate) struct Report {
    /// What the machine itself costs, before the calls and after them.
    pub(crate) yardsticks: Vec<Yardstick>,
    /// One for each way to call and level of concurrency.
    pub(crate) lines: Vec<Line>,
    /// Memory of the Caribou that served the calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<Memory>,
    /// Idle sessions with the HTTP echo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) http_sessions: Option<Sessions>,
    /// Idle sessions with the stdio echo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stdio_sessions: Option<Sessions>,
    /// Idle sessions of MCP clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_sessions: Option<Sessions>,
}

/// Memory around the calls.
#[derive(Serialize)]
pub(crate) struct Memory {
    /// Both servers discovered, nothing called yet.
    pub(crate) idle: Resident,
    /// After all calls.
    pub(crate) after_calls: Resident,
}

/// One line of the table.
#[derive(Serialize)]
pub(crate) struct Line {
    path: Path,
    in_flight: u16,
    calls: usize,
    calls_per_second: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_us_per_call: CpuPerCall,
    failed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_failure: Option<String>,
}

/// CPU time of one call by who used it, in microseconds.
#[derive(Serialize)]
struct CpuPerCall {
    caribou: f64,
    guard: f64,
    upstream: f64,
    generator: f64,
}

impl Line {
    /// The line of these samples, taken in windows of `lasted` together.
    pub(crate) fn new(path: Path, in_flight: u16, mut samples: Samples, lasted: Duration, cpu: Cpu) -> Self {
        // Failed calls cost CPU too, but a line with failures fails the run.
        let calls = samples.count();
        let [p50_us, p99_us] = samples.percentiles_us([0.50, 0.99]);
        let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / calls.max(1) as f64;
        Self {
            path,
            in_flight,
            calls,
            calls_per_second: calls as f64 / lasted.as_secs_f64(),
            p50_us,
            p99_us,
            cpu_us_per_call: CpuPerCall {
                caribou: each(cpu.caribou),
                guard: each(cpu.guard),
                upstream: each(cpu.upstream),
                generator: each(cpu.generator),
            },
            failed: samples.failures(),
            first_failure: samples.first_failure().map(str::to_owned),
        }
    }
}

impl Report {
    /// Calls that failed within a window.
    pub(crate) fn failed(&self) -> u64 {
        self.lines.iter().map(|line| line.failed).sum()
    }

    fn line(&self, path: Path, in_flight: u16) -> Option<&Line> {
        self.lines.iter().find(|line| line.path == path && line.in_flight == in_flight)
    }

    /// What there is a limit for: name, figure, limit, unit.
    fn limited(&self) -> Vec<(String, f64, f64, &'static str)> {
        let mut figures = Vec::new();
        let limits = [
            (Path::CaribouHttp, 150.0),
            (Path::CaribouStdio, 100.0),
            (Path::CaribouMcp, 200.0),
            (Path::CaribouMcpModern, 200.0),
        ];
        for (path, limit) in limits {
            for line in [8, 64].into_iter().filter_map(|in_flight| self.line(path, in_flight)) {
                let name = format!("CPU of Caribou per call, {path} at {}", line.in_flight);
                figures.push((name, line.cpu_us_per_call.caribou, limit, "µs"));
            }
        }
        let through = self.line(Path::CaribouHttp, 1).map(|line| line.p50_us);
        let direct = self.line(Path::DirectHttp, 1).map(|line| line.p50_us);
        if let (Some(through), Some(direct)) = (through, direct) {
            figures.push(("p50 of caribou-http over direct-http at 1".to_owned(), through / direct, 3.0, "×"));
        }
        for in_flight in [8, 64] {
            let cpu = |path| self.line(path, in_flight).map(|line| line.cpu_us_per_call.caribou);
            if let (Some(with), Some(without)) = (cpu(Path::CaribouHttp), cpu(Path::CaribouNoFile)) {
                figures.push((
                    format!("CPU of a look at the unchanged file at {in_flight}"),
                    with - without,
                    50.0,
                    "µs",
                ));
            }
        }
        for in_flight in [8, 64] {
            let cpu = |path| self.line(path, in_flight).map(|line| line.cpu_us_per_call.caribou);
            if let (Some(with), Some(without)) = (cpu(Path::CaribouGuarded), cpu(Path::CaribouBare)) {
                let name = format!("CPU of identity, audit and headers at {in_flight}");
                figures.push((name, with - without, 40.0, "µs"));
            }
        }
        if let Some(list) = self.line(Path::CaribouList, 1) {
            figures.push(("p50 of listing 500 tools of 50 servers at 1".to_owned(), list.p50_us, 1000.0, "µs"));
        }
        if let Some(memory) = &self.memory {
            let megabytes = memory.idle.caribou_kib as f64 * 1.024e-3;
            figures.push(("memory of Caribou, idle".to_owned(), megabytes, 40.0, "MB"));
        }
        for (kind, sessions) in [("HTTP", &self.http_sessions), ("stdio", &self.stdio_sessions)] {
            if let Some(sessions) = sessions {
                let kilobytes = sessions.caribou_kib_each() * 1.024;
                figures.push((format!("memory of Caribou per idle {kind} session"), kilobytes, 100.0, "KB"));
            }
        }
        if let Some(sessions) = &self.client_sessions {
            // The bound is for ten thousand.
            let megabytes = sessions.caribou_kib() * 1.024e-3 * 10_000.0 / sessions.opened as f64;
            figures.push(("memory of Caribou for 10,000 client sessions".to_owned(), megabytes, 200.0, "MB"));
        }
        figures
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.lines.is_empty() {
            writeln!(f, "{:54}CPU per call, µs", "")?;
            writeln!(
                f,
                "{:>9}  {:16}{:>9}{:>9}{:>9}{:>9}{:>9}{:>10}{:>11}{:>8}",
                "in flight",
                "path",
                "calls/s",
                "p50 µs",
                "p99 µs",
                "caribou",
                "guard",
                "upstream",
                "generator",
                "failed"
            )?;
        }
        self.lines.iter().try_for_each(|line| write!(f, "{line}"))?;
        self.yardsticks.iter().try_for_each(|yardstick| writeln!(f, "{:11}{yardstick}", ""))?;
        if let Some(Memory { idle, after_calls }) = &self.memory {
            writeln!(f, "\nmemory, KiB")?;
            writeln!(f, "  idle         {idle}")?;
            writeln!(f, "  after calls  {after_calls}")?;
        }
        for (kind, sessions) in [("HTTP", &self.http_sessions), ("stdio", &self.stdio_sessions)] {
            if let Some(sessions) = sessions {
                writeln!(f, "\n{} idle {kind} sessions, KiB each", sessions.opened)?;
                let (caribou, guard) = (sessions.caribou_kib_each(), sessions.guard_kib_each());
                writeln!(f, "  caribou {caribou:.0}, guard {guard:.0}, child {:.0}", sessions.child_kib_each())?;
            }
        }
        let limited = self.limited();
        if !limited.is_empty() {
            writeln!(f, "\nlimits")?;
        }
        for (name, figure, limit, unit) in limited {
            let verdict = if figure <= limit { "kept" } else { "EXCEEDED" };
            writeln!(f, "  {name:45}{figure:8.1} {unit:2}  at most {limit:4} {unit:2}  {verdict}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CpuPerCall { caribou, guard, upstream, generator } = self.cpu_us_per_call;
        writeln!(
            f,
            "{:>9}  {:16}{:9.0}{:9.0}{:9.0}{caribou:9.1}{guard:9.1}{upstream:10.1}{generator:11.1}{:8}",
            self.in_flight, self.path, self.calls_per_second, self.p50_us, self.p99_us, self.failed
        )?;
        match &self.first_failure {
            Some(failure) => writeln!(f, "           first failure: {failure}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Resident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { caribou_kib, guard_kib, children_kib, children } = self;
        write!(f, "caribou {caribou_kib}, guard {guard_kib}, {children} children {children_kib}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(path: Path, in_flight: u16, took: Duration) -> Line {
        let mut samples = Samples::default();
        (0..1000).for_each(|_| samples.answered(took));
        let cpu = Cpu { caribou: Duration::from_millis(140), ..Cpu::default() };
        Line::new(path, in_flight, samples, Duration::from_secs(2), cpu)
    }

    #[test]
    fn a_line_is_per_call_and_per_second() {
        let line = line(Path::CaribouHttp, 8, Duration::from_micros(300));
        assert_eq!((line.calls_per_second, line.p50_us, line.cpu_us_per_call.caribou), (500.0, 300.0, 140.0));
    }

    #[test]
    fn what_was_not_measured_has_no_verdict() {
        let mut report =
            Report { lines: vec![line(Path::CaribouHttp, 1, Duration::from_micros(90))], ..Report::default() };
        assert!(report.limited().is_empty());
        report.lines.push(line(Path::DirectHttp, 1, Duration::from_micros(30)));
        report.lines.push(line(Path::CaribouStdio, 64, Duration::from_micros(30)));
        let verdicts: Vec<bool> = report.limited().iter().map(|(_, figure, limit, _)| figure <= limit).collect();
        assert_eq!(verdicts, [false, true], "{report}");
    }

    #[test]
    fn a_look_at_the_file_costs_what_the_call_costs_more_than_without_one() {
        let took = Duration::from_micros(90);
        let mut report = Report { lines: vec![line(Path::CaribouNoFile, 8, took)], ..Report::default() };
        report.lines[0].cpu_us_per_call.caribou = 135.0;
        report.lines.push(line(Path::CaribouHttp, 8, took));
        assert!(report.limited().iter().any(|&(_, figure, limit, _)| (figure, limit) == (5.0, 50.0)), "{report}");
    }

    #[test]
    fn what_guards_a_call_costs_what_it_costs_more_than_a_bare_one() {
        let took = Duration::from_micros(90);
        let mut report = Report { lines: vec![line(Path::CaribouBare, 64, took)], ..Report::default() };
        report.lines.push(line(Path::CaribouGuarded, 64, took));
        report.lines[1].cpu_us_per_call.caribou = 181.0;
        assert!(report.limited().iter().any(|&(_, figure, limit, _)| (figure, limit) == (41.0, 40.0)), "{report}");
    }
}
