//! `caribou guard`: the loop of the guard process.
//!
//! Owns starting and reaping children and the connection to main, which is its stdin; what "gone" means is decided in
//! `kept`. One thread on purpose: the parent-death signal of a child is tied to the thread that forked it. When the
//! connection closes, for whatever reason, every child is killed at once and the process ends.
//!
//! SIGINT, SIGTERM and SIGHUP are caught and dropped: main decides, and a terminal signals the whole family. Caught,
//! not ignored, because `exec` resets only what is caught.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::Context;
use caribou_ports::guard::Exit;
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, set_child_subreaper, wait};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::frame::{self, MARK_BOOT, MARK_CHILD, MARK_SESSION, MAX_ORDER_BYTES, Order, Refusal, Report, Spawn};
use super::kept::Kept;
use super::socket::PacketSocket;
use super::{clock, processes, shim, startable};

/// The word on the command line that selects the guard.
pub const WORD: &str = "guard";

/// How often a finite trust is compared with the clock: the part of the gap between two owners that is ours.
const TRUST_TICK: Duration = Duration::from_millis(50);

/// How long killed children may take to die once main is gone. Longer only in uninterruptible I/O.
const LAST_DEATHS: Duration = Duration::from_secs(5);

/// How soon to look again for processes that appear while the others die.
const LAST_LOOK: Duration = Duration::from_millis(10);

/// Runs the guard until main is gone and every child is dead. Fails, with a line on stderr, when stdin is not the
/// socket that main makes or the connection breaks.
pub fn run() -> ExitCode {
    match guard() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("caribou {WORD}: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn guard() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        set_child_subreaper(Some(getpid())).context("cannot become a subreaper")?;
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            // Never read: that they are registered is what keeps the signals from ending the process.
            let _ = signal(kind)?;
        }
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        let socket = PacketSocket::from_end(stdin).context("stdin is not the socket of a running Caribou")?;
        let keeper = Keeper::new(std::env::var(MARK_BOOT).unwrap_or_default());
        keeper.keep(&socket, signal(SignalKind::child())?).await
    })
}

struct Keeper {
    boot: String,
    kept: Kept,
    trust: Trust,
    /// The lock of this life: whoever gets it knows that main is gone, and the guard, and so the children.
    lock: Option<OwnedFd>,
    /// What main has not read yet: at most three reports a child, and main bounds the children.
    reports: VecDeque<Report>,
}

/// Until when children may live.
#[derive(Clone, Copy, PartialEq)]
enum Trust {
    /// Main has said nothing yet, or time is over.
    Never,
    UntilMs(u64),
    Forever,
}

impl Keeper {
    fn new(boot: String) -> Self {
        Self { kept: Kept::new(boot.clone()), boot, trust: Trust::Never, lock: None, reports: VecDeque::new() }
    }

    async fn keep(mut self, socket: &PacketSocket, mut deaths: SignalStream) -> anyhow::Result<()> {
        let ended = self.obey_until_closed(socket, &mut deaths).await;
        self.end_everything(&mut deaths).await;
        ended
    }

    async fn obey_until_closed(&mut self, socket: &PacketSocket, deaths: &mut SignalStream) -> anyhow::Result<()> {
        let mut buffer = vec![0; MAX_ORDER_BYTES];
        let mut tick = interval(TRUST_TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let report = self.reports.front().map(frame::encode).transpose()?;
            tokio::select! {
                received = socket.receive(&mut buffer) => {
                    let Some(received) = received? else { return Ok(()) };
                    self.obey(frame::decode(&buffer[..received.length])?, received.descriptors);
                }
                _ = deaths.recv() => self.reap(),
                _ = tick.tick(), if matches!(self.trust, Trust::UntilMs(_)) => self.check_trust(),
                sent = socket.send(report.as_deref().unwrap_or_default(), &[]), if report.is_some() => {
                    if sent.is_err() {
                        return Ok(());
                    }
                    self.reports.pop_front();
                }
            }
        }
    }

    fn obey(&mut self, order: Order, descriptors: Vec<OwnedFd>) {
        match order {
            Order::Spawn(spawn) => {
                let child = spawn.child;
                let report = match self.start(spawn, descriptors) {
                    Ok(pid) => Report::Started { child, pid: pid.as_raw_nonzero().get().unsigned_abs() },
                    Err(why) => Report::Refused { child, why },
                };
                self.reports.push_back(report);
            }
            Order::Kill { child, ending } => {
                if self.kept.end(child, ending) {
                    self.settle();
                } else {
                    self.reports.push_back(Report::Gone { child });
                }
            }
            Order::Hold => self.lock = descriptors.into_iter().next(),
            Order::Trust { until_ms } => {
                self.trust = until_ms.map_or(Trust::Forever, Trust::UntilMs);
                self.check_trust();
            }
        }
    }

    fn start(&mut self, spawn: Spawn, descriptors: Vec<OwnedFd>) -> Result<Pid, Refusal> {
        // Also between two ticks: the machine may have been suspended.
        self.check_trust();
        if self.trust == Trust::Never {
            return Err(Refusal::Unavailable("the guard is not trusted with children now".to_owned()));
        }
        startable::check(&spawn).map_err(Refusal::NotStartable)?;
        let Ok([stdin, stdout, stderr]) = <[OwnedFd; 3]>::try_from(descriptors) else {
            return Err(Refusal::Unavailable("the guard has no room for descriptors".to_owned()));
        };
        // Not by name: the file may have been replaced since this process started.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("caribou").arg(shim::WORD).arg(std::process::id().to_string()).arg("--").args(&spawn.argv);
        command.env_clear().envs(spawn.env);
        command
            .env(MARK_BOOT, &self.boot)
            .env(MARK_SESSION, &spawn.session)
            .env(MARK_CHILD, self.kept.mark(spawn.child));
        if let Some(cwd) = &spawn.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
        let child = command.spawn().map_err(|e| refusal(&spawn.argv[0], &e))?;
        let pid = Pid::from_child(&child);
        self.kept.add(spawn.child, pid);
        Ok(pid)
    }

    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if let Some(child) = self.kept.leader_reaped(pid) {
                self.reports.push_back(Report::Exited { child, exit: exit_of(status) });
            }
        }
        self.settle();
    }

    fn settle(&mut self) {
        let gone = self.kept.settle();
        self.reports.extend(gone.into_iter().map(|child| Report::Gone { child }));
    }

    /// Invariant L1: past the deadline another replica may start the same sessions.
    fn check_trust(&mut self) {
        if matches!(self.trust, Trust::UntilMs(until) if is_past(until)) {
            self.trust = Trust::Never;
            self.kept.kill_all();
            self.settle();
        }
    }

    async fn end_everything(&mut self, deaths: &mut SignalStream) {
        let deadline = Instant::now() + LAST_DEATHS;
        self.kept.kill_all();
        while Instant::now() < deadline {
            self.reap();
            let mut left = processes::children();
            left.retain(|process| !process.zombie);
            if left.is_empty() && wait(WaitOptions::NOHANG).is_err() {
                return;
            }
            for process in left {
                // Also those that hide their origin: nobody is left to be served.
                let _ = rustix::process::kill_process(process.pid, rustix::process::Signal::KILL);
            }
            let _ = timeout(LAST_LOOK, deaths.recv()).await;
        }
    }
}

fn is_past(until_ms: u64) -> bool {
    clock::milliseconds(clock::uptime()).is_none_or(|now| now >= until_ms)
}

fn refusal(program: &str, error: &io::Error) -> Refusal {
    let text = format!("cannot start `{}`: {}", startable::shown(program), error.kind());
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::ArgumentListTooLong => Refusal::NotStartable(text),
        _ => Refusal::Unavailable(text),
    }
}

fn exit_of(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Lost,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::super::frame::Ending;
    use super::*;

    fn in_ms(later: u64) -> Order {
        Order::Trust { until_ms: clock::milliseconds(clock::uptime()).map(|now| now + later) }
    }

    fn order_to_spawn() -> Order {
        let argv = vec!["sleep".to_owned(), "1000".to_owned()];
        Order::Spawn(Spawn { child: 2, session: String::new(), argv, env: Vec::new(), cwd: None })
    }

    #[test]
    fn past_its_trust_a_guard_kills_its_children_and_starts_no_other() {
        let mut keeper = Keeper::new("boot".to_owned());
        let mut child = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        keeper.kept.add(1, Pid::from_child(&child));

        keeper.obey(in_ms(3_600_000), Vec::new());
        assert!(child.try_wait().unwrap().is_none());
        keeper.obey(in_ms(0), Vec::new());
        assert_eq!(child.wait().unwrap().signal(), Some(9));

        keeper.obey(order_to_spawn(), Vec::new());
        let last = keeper.reports.pop_back();
        assert!(matches!(last, Some(Report::Refused { child: 2, why: Refusal::Unavailable(_) })));

        // Trusted again, it starts others: that it lacks descriptors is found out later.
        keeper.obey(in_ms(3_600_000), Vec::new());
        keeper.obey(order_to_spawn(), Vec::new());
        let Some(Report::Refused { why: Refusal::Unavailable(why), .. }) = keeper.reports.pop_back() else {
            panic!("no refusal")
        };
        assert!(why.contains("descriptors"), "{why}");
    }

    #[test]
    fn an_order_without_its_descriptors_is_refused() {
        let mut keeper = Keeper::new("boot".to_owned());
        keeper.obey(Order::Trust { until_ms: None }, Vec::new());
        keeper.obey(order_to_spawn(), Vec::new());
        let last = keeper.reports.pop_back();
        assert!(matches!(last, Some(Report::Refused { child: 2, why: Refusal::Unavailable(_) })));
    }

    #[test]
    fn ending_an_unknown_child_is_answered_with_gone() {
        let mut keeper = Keeper::new("boot".to_owned());
        keeper.obey(Order::Kill { child: 9, ending: Ending::Ask }, Vec::new());
        assert!(matches!(keeper.reports.pop_back(), Some(Report::Gone { child: 9 })));
    }
}
