//! Child processes of this very process, for programs that embed the runtime.
//!
//! Owns the spawn, the reaping and the end of the group. Every child leads its own process group, and the whole group
//! is signalled when the session ends, also after its leader left by itself. Does not outlive this process's own
//! SIGKILL: for that the `caribou` binary has its guard process.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caribou_core::bounds::CHILD_GRACE;
use caribou_ports::BoxFuture;
use caribou_ports::guard::{ChildGroup, ChildHost, Exit, HostedChild, Launch, SpawnError};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// How often a group that was told to end is looked at: a few looks within the life of a quick server.
const LOOK: Duration = Duration::from_millis(10);

/// How long the members of a killed group may take to be gone; only one in uninterruptible sleep takes longer.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// Starts children of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirectHost;

impl ChildHost for DirectHost {
    fn spawn(&self, launch: Launch) -> BoxFuture<'static, Result<HostedChild, SpawnError>> {
        Box::pin(async move { spawn(launch) })
    }
}

fn spawn(launch: Launch) -> Result<HostedChild, SpawnError> {
    let Launch { argv, env, cwd, stdin, stdout, stderr, .. } = launch;
    let [program, args @ ..] = argv.as_slice() else {
        return Err(SpawnError::NotStartable("the command is empty".to_owned()));
    };
    if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        return Err(SpawnError::NotStartable(format!("the working directory {} does not exist", cwd.display())));
    }
    let stdio = |fd: OwnedFd| Stdio::from(fd);
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(env).process_group(0);
    command.stdin(stdio(stdin)).stdout(stdio(stdout)).stderr(stdio(stderr));
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    let child = command.spawn().map_err(|error| not_started(program, &error))?;
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    let Some(leader) = pid else {
        return Err(SpawnError::HostUnavailable("the child has no process id".to_owned()));
    };
    let (tell, told) = oneshot::channel();
    tokio::spawn(reap(child, tell));
    let exited = Box::pin(async move { told.await.unwrap_or(Exit::Lost) });
    let group = Group { leader, gone: Arc::default() };
    Ok(HostedChild { pid: leader.as_raw_nonzero().get().cast_unsigned(), exited, group: Box::new(group) })
}

fn not_started(program: &str, error: &std::io::Error) -> SpawnError {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => SpawnError::NotStartable(format!("the command `{program}` was not found")),
        ErrorKind::PermissionDenied => SpawnError::NotStartable(format!("the command `{program}` is not executable")),
        ErrorKind::InvalidInput => {
            SpawnError::NotStartable("the command, an argument or a variable holds a null character".to_owned())
        }
        _ if error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
            SpawnError::NotStartable(format!("the command `{program}` is not a program"))
        }
        _ => SpawnError::HostUnavailable(format!("`{program}`: {error}")),
    }
}

/// Waits for the leader for as long as it lives: it is reaped even when nobody listens any more.
async fn reap(mut child: Child, tell: oneshot::Sender<Exit>) {
    let exit = child.wait().await.map_or(Exit::Lost, exit_of);
    // The session may have been dropped meanwhile.
    let _ = tell.send(exit);
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Lost,
    }
}

/// One process group.
#[derive(Clone)]
struct Group {
    leader: Pid,
    /// Once empty its id may be somebody else's: it is never signalled again.
    gone: Arc<AtomicBool>,
}

impl ChildGroup for Group {
    fn end(&self, grace: Duration) -> BoxFuture<'static, ()> {
        let group = self.clone();
        Box::pin(async move { group.terminate(grace).await })
    }
}

impl Group {
    async fn terminate(&self, grace: Duration) {
        for (signal, patience) in [(Signal::TERM, grace), (Signal::KILL, AFTER_KILL)] {
            self.signal(signal);
            if self.emptied_within(patience).await {
                return;
            }
        }
        tracing::warn!(pid = self.leader.as_raw_nonzero(), "members of a killed process group are still there");
    }

    fn signal(&self, signal: Signal) {
        if !self.gone.load(Ordering::Acquire) && kill_process_group(self.leader, signal) == Err(Errno::SRCH) {
            self.gone.store(true, Ordering::Release);
        }
    }

    async fn emptied_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            if self.is_empty() {
                return true;
            }
            let now = Instant::now();
            if now >= deadline {
                return false;
            }
            sleep_until(deadline.min(now + LOOK)).await;
        }
    }

    fn is_empty(&self) -> bool {
        if !self.gone.load(Ordering::Acquire) && test_kill_process_group(self.leader) == Err(Errno::SRCH) {
            self.gone.store(true, Ordering::Release);
        }
        self.gone.load(Ordering::Acquire)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Clones live only inside `end`, which finishes the group itself.
        if Arc::strong_count(&self.gone) > 1 || self.is_empty() {
            return;
        }
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let group = self.clone();
                runtime.spawn(async move { group.terminate(CHILD_GRACE).await });
            }
            Err(_) => self.signal(Signal::KILL),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::unix::pipe;
    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(30);

    /// A shell that runs `script`, and what comes out of it.
    async fn shell(script: &str) -> (HostedChild, pipe::Receiver) {
        let (_, stdin) = pipe::pipe().expect("pipe");
        let (stdout, ours) = pipe::pipe().expect("pipe");
        let (stderr, _) = pipe::pipe().expect("pipe");
        let launch = Launch {
            session: "s".to_owned(),
            argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            cwd: None,
            stdin: stdin.into_blocking_fd().expect("stdin"),
            stdout: stdout.into_blocking_fd().expect("stdout"),
            stderr: stderr.into_blocking_fd().expect("stderr"),
        };
        (DirectHost.spawn(launch).await.expect("started"), ours)
    }

    async fn first_line(stdout: pipe::Receiver) -> String {
        use tokio::io::AsyncBufReadExt as _;
        let mut lines = tokio::io::BufReader::new(stdout).lines();
        timeout(SOON, lines.next_line()).await.expect("in time").expect("read").unwrap_or_default()
    }

    fn is_running(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
    }

    #[tokio::test]
    async fn an_exit_is_told_as_code_or_signal() {
        let (child, _stdout) = shell("exit 7").await;
        assert_eq!(timeout(SOON, child.exited).await, Ok(Exit::Code(7)));
        let (child, _stdout) = shell("kill -9 $$").await;
        assert_eq!(timeout(SOON, child.exited).await, Ok(Exit::Signal(9)));
    }

    #[tokio::test]
    async fn the_whole_group_ends_also_after_its_leader_left() {
        let (child, stdout) = shell("sleep 600 & echo $!; exit 0").await;
        let grandchild = first_line(stdout).await;
        timeout(SOON, child.exited).await.expect("the leader left");
        assert!(is_running(&grandchild));
        timeout(SOON, child.group.end(Duration::from_secs(5))).await.expect("ended");
        assert!(!is_running(&grandchild));
        timeout(SOON, child.group.end(Duration::ZERO)).await.expect("ends again");
    }

    #[tokio::test]
    async fn a_group_that_ignores_sigterm_is_killed_after_its_grace() {
        let (child, stdout) = shell("trap '' TERM; echo $$; while :; do sleep 600; done").await;
        let leader = first_line(stdout).await;
        timeout(SOON, child.group.end(Duration::from_millis(50))).await.expect("ended");
        assert!(!is_running(&leader));
    }

    #[tokio::test]
    async fn a_dropped_group_ends_in_the_background() {
        let (child, stdout) = shell("echo $$; exec sleep 600").await;
        let _leader = first_line(stdout).await;
        drop(child.group);
        assert_eq!(timeout(SOON, child.exited).await, Ok(Exit::Signal(15)));
    }

    #[tokio::test]
    async fn what_cannot_be_started_is_named() {
        // Contract 4.6: an explicit `cwd` must exist.
        let fd = || pipe::pipe().expect("pipe").0.into_blocking_fd().expect("fd");
        let launch = |program: &str, cwd: Option<&str>| Launch {
            session: "s".to_owned(),
            argv: vec![program.to_owned()],
            env: Vec::new(),
            cwd: cwd.map(Into::into),
            stdin: fd(),
            stdout: fd(),
            stderr: fd(),
        };
        for (launch, named) in [
            (launch("no-such-program", None), "`no-such-program` was not found"),
            (launch("/etc", None), "not executable"),
            (launch("true", Some("/no/such/folder")), "/no/such/folder"),
        ] {
            let error = DirectHost.spawn(launch).await.err().expect("not startable").to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
