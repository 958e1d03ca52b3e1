//! One run: what is started, and in which order it is measured.
//!
//! Owns the interleaving: at each level of concurrency every way to call gets a few short windows in turn, so that a
//! machine that gets slower in the meantime slows all of them alike. A caller that breaks ends the run. Keeps no
//! invariant.

use std::path::PathBuf;
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
use crate::started::{Caribou, HttpEcho};

/// Windows for each line of the table. Fewer would see other moods of the machine, more would add up the rounding of
/// CPU times.
const ROUNDS: u32 = 6;

/// Load before the first window, not counted: sessions are opened and caches filled.
const WARM_UP: Duration = Duration::from_millis(500);

/// Threads of conversation that the callers share: callers of one agent share a session, several agents do not.
const CONVERSATIONS: usize = 8;

/// Measures everything the plan asks for.
///
/// # Errors
/// Something could not be started, or a first call failed.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Report> {
    let program = caribou_program(plan)?;
    let echo = HttpEcho::start(plan.era())?;
    let mut report = Report::default();
    if plan.paths.iter().any(|path| path.is_through_caribou()) {
        let caribou = Caribou::start(&program, &echo, plan.era())?;
        let idle = resident(caribou.pid())?;
        report.lines = lines(plan, &echo, Some(&caribou))?;
        report.memory = Some(Memory { idle, after_calls: resident(caribou.pid())? });
    } else {
        report.lines = lines(plan, &echo, None)?;
    }
    // A fresh process each: memory that an earlier load gave back would hide what the sessions need.
    if plan.http_sessions > 0 {
        let caribou = Caribou::start(&program, &echo, plan.era())?;
        report.http_sessions = Some(sessions::open(&caribou, &caribou.http_tool, plan.http_sessions)?);
    }
    if plan.stdio_sessions > 0 {
        let caribou = Caribou::start(&program, &echo, plan.era())?;
        report.stdio_sessions = Some(sessions::open(&caribou, &caribou.stdio_tool, plan.stdio_sessions)?);
    }
    Ok(report)
}

fn caribou_program(plan: &Plan) -> anyhow::Result<PathBuf> {
    match &plan.caribou {
        // Caribou is started in a folder of its own, so the path must not depend on ours.
        Some(path) => path.canonicalize().with_context(|| format!("finding {}", path.display())),
        None => Ok(std::env::current_exe().context("finding this program")?.with_file_name("caribou")),
    }
}

fn lines(plan: &Plan, echo: &HttpEcho, caribou: Option<&Caribou>) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for &level in &plan.concurrency {
        let mut contests = plan
            .paths
            .iter()
            .map(|&path| Contest::prepare(path, usize::from(level), echo, caribou, plan.era()))
            .collect::<anyhow::Result<Vec<_>>>()?;
        for round in 1..=ROUNDS {
            eprintln!("{level} in flight, round {round} of {ROUNDS}");
            for contest in &mut contests {
                contest.window(plan.seconds() / ROUNDS, caribou.map(Caribou::pid))?;
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
    callers: Callers,
    samples: Samples,
    lasted: Duration,
    cpu: Cpu,
}

impl Contest {
    fn prepare(path: Path, level: usize, echo: &HttpEcho, caribou: Option<&Caribou>, era: Era) -> anyhow::Result<Self> {
        let through = |tool: fn(&Caribou) -> &str| {
            let caribou = caribou.context("no Caribou was started")?;
            let caller = |n| HttpCaller::through(caribou.address, tool(caribou), &format!("t{}", n % CONVERSATIONS));
            (0..level).map(caller).collect::<anyhow::Result<Vec<_>>>().map(Callers::Http)
        };
        let mut callers = match path {
            Path::DirectHttp => {
                Callers::Http((0..level).map(|_| HttpCaller::direct(echo.address, era)).collect::<anyhow::Result<_>>()?)
            }
            Path::DirectStdio => Callers::Pipe(PipeCaller::start(era, level)?),
            Path::CaribouHttp => through(|caribou| &caribou.http_tool)?,
            Path::CaribouStdio => through(|caribou| &caribou.stdio_tool)?,
        };
        if let Callers::Http(callers) = &mut callers {
            for caller in callers {
                caller.call()?.map_err(|answer| anyhow!("the first call of {path} was answered with {answer}"))?;
            }
        }
        let warm = callers.run(WARM_UP)?;
        ensure!(warm.count() > 0, "no call of {path} succeeded: {}", warm.first_failure().unwrap_or("no answer"));
        Ok(Self { path, callers, samples: Samples::default(), lasted: Duration::ZERO, cpu: Cpu::default() })
    }

    fn window(&mut self, length: Duration, caribou: Option<u32>) -> anyhow::Result<()> {
        let before = Processes::now(caribou)?;
        let start = Instant::now();
        let samples = self.callers.run(length)?;
        self.lasted += start.elapsed();
        self.cpu += Processes::now(caribou)?.cpu_since(&before);
        self.samples.absorb(samples);
        Ok(())
    }

    fn finish(self, in_flight: u16) -> Line {
        Line::new(self.path, in_flight, self.samples, self.lasted, self.cpu)
    }
}
