//! [`Guard`]: the [`ChildHost`] of Caribou, main's handle on its guard process.
//!
//! Owns the three things a caller can do with a child: start it, wait for its exit, end its group. Orders are sent by
//! the caller's own task, so the only queue is the socket. Whatever the caller drops, nothing is left running: a
//! child belongs to its [`Group`] from before the order is sent, and a dropped group is ended in the background.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds::CHILD_GRACE;
use caribou_core::ids::BootId;
use caribou_ports::BoxFuture;
use caribou_ports::guard::{ChildGroup, ChildHost, Exit, HostedChild, Launch, SpawnError};
use rustix::process::{getpid, set_child_subreaper};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::clock;
use super::frame::{self, ChildId, Ending, MAX_ORDER_BYTES, Order, Refusal, Spawn};
use super::roster::{Facts, Roster};
use super::socket::PacketSocket;
use super::startable;
use super::supervisor::{Link, Supervisor, Until, launch};
use super::sweep::kill_remainders;

/// How long one order may wait for a guard and its answer. Includes a restart of the guard with its sweep.
const ANSWER: Duration = Duration::from_secs(10);

/// How long one signal may wait for room in the socket; a guard that reads nothing for so long is frozen.
const SEND: Duration = Duration::from_secs(1);

/// How long SIGKILL may take to be effective. Longer only in uninterruptible I/O.
const DEATH: Duration = Duration::from_secs(5);

/// How long [`Guard::stop`] waits for guard and children.
const STOP: Duration = Duration::from_secs(10);

/// How to start the guard.
pub struct GuardOptions {
    /// The `caribou` binary, usually `std::env::current_exe()`.
    pub program: PathBuf,
    /// This life of this replica; every child carries it as `CARIBOU_BOOT`.
    pub boot: BootId,
    /// Whether other replicas may take over what this one holds: then children live only as long as
    /// [`Guard::trust_until`] says. Otherwise they live as long as this process does.
    pub is_leased: bool,
    /// The lock of this life, which the guard holds too: it is free only when main, guard and children are gone.
    pub lock: Option<File>,
}

impl GuardOptions {
    /// Of a replica that shares nothing with others.
    pub fn new(program: PathBuf, boot: BootId) -> Self {
        Self { program, boot, is_leased: false, lock: None }
    }
}

/// The guard did not start.
#[derive(Debug, thiserror::Error)]
#[error("the guard process cannot be started: {0}")]
pub struct GuardError(#[from] io::Error);

/// The guard process and all its children. Dropping it ends them in the background; [`stop`](Self::stop) waits.
pub struct Guard {
    shared: Arc<Shared>,
    guard_pid: watch::Receiver<Option<u32>>,
    stop: CancellationToken,
}

struct Shared {
    roster: Arc<Roster>,
    link: watch::Receiver<Link>,
    trust: watch::Sender<Until>,
    /// What the guard has been told of it.
    told: watch::Receiver<Until>,
    /// Groups may be dropped outside the runtime.
    runtime: Handle,
}

impl Guard {
    /// Starts the guard process, and the task that replaces it should it die. Makes this process a subreaper, and
    /// kills what a life before this one left on the machine. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the program cannot be started, or the kernel refuses a socket.
    pub fn start(options: GuardOptions) -> Result<Arc<Self>, GuardError> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        set_child_subreaper(Some(getpid())).map_err(io::Error::from)?;
        kill_remainders();
        let running = launch(&options.program, &options.boot)?;
        let roster = Arc::new(Roster::default());
        let stop = CancellationToken::new();
        let (link, link_receiver) = watch::channel(None);
        let (pid, guard_pid) = watch::channel(None);
        let GuardOptions { program, boot, is_leased, lock } = options;
        let (trust, trust_receiver) = watch::channel(is_leased.then_some(0));
        let (told, told_receiver) = watch::channel(Some(0));
        let supervisor = Supervisor {
            program,
            boot,
            roster: roster.clone(),
            link,
            guard_pid: pid,
            stop: stop.clone(),
            lock: lock.map(Arc::new),
            trust: trust_receiver,
            told,
        };
        runtime.spawn(supervisor.run(running));
        let shared = Arc::new(Shared { roster, link: link_receiver, trust, told: told_receiver, runtime });
        Ok(Arc::new(Self { shared, guard_pid, stop }))
    }

    /// The process id of the guard, for `status`; `None` before it is connected.
    pub fn pid(&self) -> Option<u32> {
        *self.guard_pid.borrow()
    }

    /// Children may live until this machine has been up for so long, suspends counted; then the guard kills all of
    /// them, whatever this process does (invariant L1). A later call counts instead of an earlier one. Does not block.
    pub fn trust_until(&self, uptime: Duration) {
        self.shared.trust.send_replace(clock::milliseconds(uptime));
    }

    /// Ends the guard and every child, at once and without grace; returns when nothing is alive, after 10 s at most.
    /// Nothing can be started afterwards.
    pub async fn stop(&self) {
        self.stop.cancel();
        // The supervisor drops its end when it is done, which is what is waited for.
        let mut link = self.shared.link.clone();
        if timeout(STOP, link.wait_for(|_| false)).await.is_err() {
            warn!("the guard did not end in time");
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl ChildHost for Guard {
    fn spawn(&self, launch: Launch) -> BoxFuture<'static, Result<HostedChild, SpawnError>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let answer = timeout(ANSWER, shared.spawn(launch)).await;
            answer.unwrap_or_else(|_| Err(unavailable("the guard does not answer")))
        })
    }
}

impl Shared {
    async fn spawn(self: Arc<Self>, launch: Launch) -> Result<HostedChild, SpawnError> {
        let Launch { session, argv, env, cwd, stdin, stdout, stderr } = launch;
        let program = argv.first().map(|program| startable::shown(program)).unwrap_or_default();
        let socket = self.running_guard().await?;
        self.trust_told().await?;
        // After the guard was chosen: a child enlisted while that guard is lost counts as lost with it.
        let (child, facts) = self.roster.enlist().ok_or_else(|| unavailable("there are too many children"))?;
        let group = Group { child, facts, shared: self.clone() };
        let order = frame::encode(&Order::Spawn(Spawn { child, session, argv, env, cwd }));
        let Some(order) = order.ok().filter(|order| order.len() <= MAX_ORDER_BYTES) else {
            self.roster.forget(child);
            let why = format!("cannot start `{program}`: its arguments and environment exceed 128 KiB");
            return Err(SpawnError::NotStartable(why));
        };
        if socket.send(&order, &[stdin.as_fd(), stdout.as_fd(), stderr.as_fd()]).await.is_err() {
            self.roster.forget(child);
            return Err(unavailable("the guard is gone"));
        }
        // Held any longer, the end of the child would not be the end of its pipes.
        drop((stdin, stdout, stderr));
        started(group).await
    }

    async fn running_guard(&self) -> Result<Arc<PacketSocket>, SpawnError> {
        let mut link = self.link.clone();
        let socket = link.wait_for(Option::is_some).await.ok().and_then(|link| link.clone());
        socket.ok_or_else(|| unavailable("the guard was stopped"))
    }

    /// An order must not overtake the trust under which it is given.
    async fn trust_told(&self) -> Result<(), SpawnError> {
        let trust = self.trust.subscribe();
        let told = self.told.clone().wait_for(|told| *told == *trust.borrow()).await.is_ok();
        told.then_some(()).ok_or_else(|| unavailable("the guard was stopped"))
    }

    async fn kill(&self, child: ChildId, ending: Ending) {
        // Without a guard there is nothing to signal: its children die with it.
        let Some(socket) = self.link.borrow().clone() else { return };
        let Ok(order) = frame::encode(&Order::Kill { child, ending }) else { return };
        let _ = timeout(SEND, socket.send(&order, &[])).await;
    }
}

async fn started(group: Group) -> Result<HostedChild, SpawnError> {
    let mut facts = group.facts.clone();
    let answer = facts.wait_for(Facts::answered).await.map(|facts| (*facts).clone());
    match answer {
        Ok(Facts { refused: Some(Refusal::NotStartable(why)), .. }) => Err(SpawnError::NotStartable(why)),
        Ok(Facts { refused: Some(Refusal::Unavailable(why)), .. }) => Err(SpawnError::HostUnavailable(why)),
        Ok(Facts { pid: Some(pid), .. }) => {
            Ok(HostedChild { pid, exited: Box::pin(exited(facts)), group: Box::new(group) })
        }
        Ok(_) | Err(_) => Err(unavailable("the guard ended while it started the child")),
    }
}

/// Everything that descends from one child.
struct Group {
    child: ChildId,
    facts: watch::Receiver<Facts>,
    shared: Arc<Shared>,
}

impl ChildGroup for Group {
    fn end(&self, grace: Duration) -> BoxFuture<'static, ()> {
        Box::pin(end(self.shared.clone(), self.child, self.facts.clone(), grace))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !is_gone(&self.facts) {
            let end = end(self.shared.clone(), self.child, self.facts.clone(), CHILD_GRACE);
            self.shared.runtime.spawn(end);
        }
    }
}

/// SIGTERM, `grace`, SIGKILL, until nothing is alive or even that did not help in time.
async fn end(shared: Arc<Shared>, child: ChildId, mut facts: watch::Receiver<Facts>, grace: Duration) {
    for (ending, patience) in [(Ending::Ask, grace), (Ending::Kill, DEATH)] {
        if is_gone(&facts) {
            return;
        }
        shared.kill(child, ending).await;
        if timeout(patience, facts.wait_for(|facts| facts.gone)).await.is_ok() {
            return;
        }
    }
    warn!(child, "processes of a child are alive after SIGKILL");
}

async fn exited(mut facts: watch::Receiver<Facts>) -> Exit {
    match facts.wait_for(|facts| facts.exit.is_some()).await {
        Ok(facts) => facts.exit.unwrap_or(Exit::Lost),
        Err(_) => Exit::Lost,
    }
}

/// A child without a sender was never ordered.
fn is_gone(facts: &watch::Receiver<Facts>) -> bool {
    facts.borrow().gone || facts.has_changed().is_err()
}

fn unavailable(why: &str) -> SpawnError {
    SpawnError::HostUnavailable(why.to_owned())
}
