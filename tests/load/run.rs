//! One run: what is started, and in which order it is measured.
//!
//! Owns the interleaving: at each level of concurrency every way to call gets a few short windows in turn, so that a
//! machine that gets slower in the meantime slows all of them alike. A caller that breaks ends the run. Keeps no
//! invariant.

use std::path::{Path as FilePath, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use caribou_core::era::Era;

use crate::Plan;
use crate::call::{HttpCaller, Path};
use crate::pipe::PipeCaller;
use crate::proc::{Cpu, Processes, resident};
use crate::report::{Line, Memory, Report};
use crate::sample::Samples;
use crate::sessions;
use crate::stand::Stand;
use crate::started::Caribou;
use crate::yardstick::Yardstick;

/// Windows for each line of the table. Fewer would see other moods of the machine, more would add up the rounding of
/// CPU times.
const ROUNDS: u32 = 6;

/// Load before the first window, not counted: sessions are opened and caches filled.
const WARM_UP: Duration = Duration::from_millis(500);

/// Measures everything the plan asks for.
///
/// # Errors
/// Something could not be started, or a first call failed.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Report> {
    let program = caribou_program(plan.caribou.as_deref())?;
    let stand = Stand::start(plan, &program)?;
    let memory = || stand.following.as_ref().map(|caribou| resident(caribou.pid())).transpose();
    let idle = memory()?;
    let before = Yardstick::take()?;
    let mut report = Report { lines: lines(plan, &stand)?, ..Report::default() };
    report.yardsticks = vec![before, Yardstick::take()?];
    report.memory = idle.zip(memory()?).map(|(idle, after_calls)| Memory { idle, after_calls });
    let Stand { echo, .. } = stand;
    // A fresh process each: memory that an earlier load gave back would hide what the sessions need.
    if plan.http_sessions > 0 {
        let caribou = Caribou::start(&program, &echo, plan.era())?;
        report.http_sessions = Some(sessions::open(&caribou, caribou.http_tool()?, plan.http_sessions)?);
    }
    if plan.stdio_sessions > 0 {
        let caribou = Caribou::start(&program, &echo, plan.era())?;
        report.stdio_sessions = Some(sessions::open(&caribou, caribou.stdio_tool()?, plan.stdio_sessions)?);
    }
    if plan.client_sessions > 0 {
        let caribou = Caribou::start(&program, &echo, plan.era())?;
        report.client_sessions = Some(sessions::open_clients(&caribou, plan.client_sessions)?);
    }
    Ok(report)
}

/// The Caribou that was asked for, or the one beside this program.
///
/// # Errors
/// There is none.
pub(crate) fn caribou_program(wanted: Option<&FilePath>) -> anyhow::Result<PathBuf> {
    match wanted {
        // Caribou is started in a folder of its own, so the path must not depend on ours.
        Some(path) => path.canonicalize().with_context(|| format!("finding {}", path.display())),
        None => Ok(std::env::current_exe().context("finding this program")?.with_file_name("caribou")),
    }
}

fn lines(plan: &Plan, stand: &Stand) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for &level in &plan.concurrency {
        let mut contests = plan
            .paths
            .iter()
            .map(|&path| Contest::prepare(path, usize::from(level), stand, plan.era()))
            .collect::<anyhow::Result<Vec<_>>>()?;
        for round in 1..=ROUNDS {
            eprintln!("{level} in flight, round {round} of {ROUNDS}");
            for contest in &mut contests {
                contest.window(plan.seconds() / ROUNDS)?;
            }
        }
        lines.extend(contests.into_iter().map(|contest| contest.finish(level)));
    }
    Ok(lines)
}

enum Callers {
    Http(Vec<HttpCaller>),
    Pipe(PipeCaller),
}

impl Callers {
    fn run(&mut self, length: Duration) -> anyhow::Result<Samples> {
        let end = Instant::now() + length;
        match self {
            Self::Pipe(caller) => caller.run(end),
            Self::Http(callers) => thread::scope(|scope| {
                let running: Vec<_> = callers.iter_mut().map(|caller| scope.spawn(move || caller.run(end))).collect();
                let mut all = Samples::default();
                for caller in running {
                    all.absorb(caller.join().map_err(|_| anyhow!("a caller panicked"))??);
                }
                Ok(all)
            }),
        }
    }
}

/// One way to call at one level of concurrency, and what was measured of it so far.
struct Contest {
    path: Path,
    /// The process that the callers go through, if there is one.
    caribou: Option<u32>,
    callers: Callers,
    samples: Samples,
    lasted: Duration,
    cpu: Cpu,
}

impl Contest {
    fn prepare(path: Path, level: usize, stand: &Stand, era: Era) -> anyhow::Result<Self> {
        let mut callers = match path {
            Path::DirectStdio => Callers::Pipe(PipeCaller::start(era, level)?),
            _ => Callers::Http((0..level).map(|n| stand.caller(path, n)).collect::<anyhow::Result<_>>()?),
        };
        if let Callers::Http(callers) = &mut callers {
            for caller in callers {
                caller.call()?.map_err(|answer| anyhow!("the first call of {path} was answered with {answer}"))?;
            }
        }
        let warm = callers.run(WARM_UP)?;
        ensure!(warm.count() > 0, "no call of {path} succeeded: {}", warm.first_failure().unwrap_or("no answer"));
        let caribou = stand.caribou(path).map(Caribou::pid);
        Ok(Self { path, caribou, callers, samples: Samples::default(), lasted: Duration::ZERO, cpu: Cpu::default() })
    }

    fn window(&mut self, length: Duration) -> anyhow::Result<()> {
        let before = Processes::now(self.caribou)?;
        let start = Instant::now();
        let samples = self.callers.run(length)?;
        self.lasted += start.elapsed();
        self.cpu += Processes::now(self.caribou)?.cpu_since(&before);
        self.samples.absorb(samples);
        Ok(())
    }

    fn finish(self, in_flight: u16) -> Line {
        Line::new(self.path, in_flight, self.samples, self.lasted, self.cpu)
    }
}
