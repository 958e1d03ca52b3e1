//! The guard with real processes: what it starts, what it ends, and that nothing is left whoever dies.
//!
//! Every child is a shell script; every wait is for a condition with a deadline.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions, not the helpers beside them")]

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, pipe};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use caribou::guard::{Guard, GuardOptions};
use caribou_core::ids::BootId;
use caribou_ports::guard::{ChildHost, Exit, HostedChild, Launch, SpawnError};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::time::{interval, timeout};

/// Longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a hard kill promises.
const PROMISE: Duration = Duration::from_secs(2);

/// A script that ignores SIGTERM and the end of its stdin, with a grandchild that does the same. Prints both pids.
const STUBBORN: &str = "trap '' TERM; sleep 1000 & echo $$ $!; while :; do sleep 1000; done";

/// A launcher whose true server left its group and session. Prints both pids.
const ESCAPES: &str = "setsid sh -c 'echo $$; trap \"\" TERM; while :; do sleep 1000; done' & echo $$; wait";

struct Server {
    child: HostedChild,
    stdin: PipeWriter,
    stdout: BufReader<PipeReader>,
    stderr: PipeReader,
}

fn start_guard() -> Arc<Guard> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_caribou"));
    Guard::start(GuardOptions::new(program, boot())).unwrap()
}

/// A guard whose children live only as long as it is told.
fn start_leased_guard(lock: Option<File>) -> Arc<Guard> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_caribou"));
    Guard::start(GuardOptions { is_leased: true, lock, ..GuardOptions::new(program, boot()) }).unwrap()
}

fn boot() -> BootId {
    BootId::new(uuid::Uuid::new_v4().to_string())
}

/// For how long this machine is up, as the guard counts it.
fn uptime() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}

async fn launch(guard: &Guard, argv: &[&str], cwd: Option<&str>) -> Result<Server, SpawnError> {
    let (child_stdin, stdin) = pipe().unwrap();
    let (stdout, child_stdout) = pipe().unwrap();
    let (stderr, child_stderr) = pipe().unwrap();
    let launch = Launch {
        session: "files/ann:t1".to_owned(),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned()), ("GREETING".to_owned(), "hello".to_owned())],
        cwd: cwd.map(PathBuf::from),
        stdin: OwnedFd::from(child_stdin),
        stdout: OwnedFd::from(child_stdout),
        stderr: OwnedFd::from(child_stderr),
    };
    let child = guard.spawn(launch).await?;
    Ok(Server { child, stdin, stdout: BufReader::new(stdout), stderr })
}

async fn sh(guard: &Guard, script: &str) -> Server {
    launch(guard, &["sh", "-c", script], None).await.unwrap()
}

impl Server {
    /// `count` process ids the script printed.
    fn pids(&mut self, count: usize) -> Vec<Pid> {
        let mut pids = Vec::new();
        while pids.len() < count {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the script ended early");
            pids.extend(line.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()));
        }
        pids
    }

    async fn exit(&mut self) -> Exit {
        timeout(PATIENCE, &mut self.child.exited).await.unwrap()
    }
}

fn alive(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

async fn eventually(what: &str, limit: Duration, condition: impl Fn() -> bool) {
    let mut again = interval(Duration::from_millis(10));
    let waiting = async {
        while !condition() {
            again.tick().await;
        }
    };
    assert!(timeout(limit, waiting).await.is_ok(), "{what}: not within {limit:?}");
}

fn guard_pid(guard: &Guard) -> Pid {
    Pid::from_raw(i32::try_from(guard.pid().unwrap()).unwrap()).unwrap()
}

#[tokio::test]
async fn a_child_runs_on_the_given_pipes_with_the_given_environment_and_folder() {
    let guard = start_guard();
    let script = "read line; echo \"$line $GREETING $CARIBOU_SESSION ${HOME-none} $(pwd)\"; echo oops >&2; exit 7";
    let mut server = launch(&guard, &["sh", "-c", script], Some("/usr")).await.unwrap();
    std::io::Write::write_all(&mut server.stdin, b"hi\n").unwrap();
    assert_eq!(server.exit().await, Exit::Code(7));
    let (mut out, mut err) = (String::new(), String::new());
    server.stdout.read_to_string(&mut out).unwrap();
    server.stderr.read_to_string(&mut err).unwrap();
    assert_eq!((out.as_str(), err.as_str()), ("hi hello files/ann:t1 none /usr\n", "oops\n"));
    guard.stop().await;
}

#[tokio::test]
async fn a_child_leads_a_session_of_its_own_and_its_signal_is_reported() {
    let guard = start_guard();
    let mut server = sh(&guard, "cut -d' ' -f5,6 /proc/$$/stat; echo $$; kill -KILL $$").await;
    let ids = server.pids(3);
    assert_eq!(ids[0], ids[1]);
    assert_eq!(ids[1], ids[2]);
    assert_eq!(server.child.pid, u32::try_from(ids[0].as_raw_nonzero().get()).unwrap());
    assert_eq!(server.exit().await, Exit::Signal(9));
    guard.stop().await;
}

#[tokio::test]
async fn what_cannot_be_started_is_refused_by_name_without_arguments() {
    let guard = start_guard();
    let refused = |argv: &'static [&'static str], cwd| {
        let guard = &guard;
        async move {
            match launch(guard, argv, cwd).await {
                Err(SpawnError::NotStartable(why)) => why,
                Err(other) => panic!("{other}"),
                Ok(_) => panic!("started"),
            }
        }
    };
    let missing = refused(&["no-such-server", "--token=secret"], None).await;
    assert_eq!(missing, "cannot start `no-such-server`: not found on PATH");
    let folder = refused(&["sh"], Some("/no/such/folder")).await;
    assert_eq!(folder, "cannot start `sh`: its working directory /no/such/folder does not exist");
    let nul = refused(&["sh", "a\0b"], None).await;
    assert_eq!(nul, "cannot start `sh`: invalid input parameter");
    let long = "x".repeat(200_000);
    let large = launch(&guard, &["sh", &long], None).await.map(|_| ()).unwrap_err();
    assert_eq!(large.to_string(), "cannot start `sh`: its arguments and environment exceed 128 KiB");
    guard.stop().await;
}

#[tokio::test]
async fn a_program_the_kernel_refuses_says_so_on_stderr_and_exits_127() {
    // Written by another process: a descriptor of ours could be inherited by a fork at the wrong moment.
    let script = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no-interpreter");
    let write = "printf '#!/no/such/interpreter\\n' > \"$0\" && chmod +x \"$0\"";
    assert!(Command::new("sh").arg("-c").arg(write).arg(&script).status().unwrap().success());
    let guard = start_guard();
    let mut server = launch(&guard, &[script.to_str().unwrap()], None).await.unwrap();
    assert_eq!(server.exit().await, Exit::Code(127));
    let mut err = String::new();
    server.stderr.read_to_string(&mut err).unwrap();
    assert!(err.contains("cannot start"), "{err}");
    guard.stop().await;
}

#[tokio::test]
async fn ending_a_polite_group_needs_no_kill() {
    let guard = start_guard();
    let mut server = sh(&guard, "trap 'exit 3' TERM; echo $$; while :; do sleep 0.01; done").await;
    let pids = server.pids(1);
    timeout(PATIENCE, server.child.group.end(PATIENCE)).await.unwrap();
    assert_eq!(server.exit().await, Exit::Code(3));
    assert!(!alive(pids[0]));
    timeout(PATIENCE, server.child.group.end(PATIENCE)).await.unwrap();
    guard.stop().await;
}

#[tokio::test]
async fn ending_a_stubborn_group_takes_the_grandchild_along() {
    let guard = start_guard();
    let mut server = sh(&guard, STUBBORN).await;
    let pids = server.pids(2);
    drop(server.stdin);
    timeout(PATIENCE, server.child.group.end(Duration::from_millis(50))).await.unwrap();
    assert!(!pids.iter().any(|pid| alive(*pid)));
    guard.stop().await;
}

#[tokio::test]
async fn a_grandchild_that_survives_its_leader_is_ended_with_the_group() {
    let guard = start_guard();
    let mut server = sh(&guard, "trap '' TERM; sleep 1000 & echo $!").await;
    let pids = server.pids(1);
    assert_eq!(server.exit().await, Exit::Code(0));
    assert!(alive(pids[0]));
    timeout(PATIENCE, server.child.group.end(Duration::from_millis(50))).await.unwrap();
    assert!(!alive(pids[0]));
    guard.stop().await;
}

#[tokio::test]
async fn a_server_that_left_its_session_is_found_and_ended() {
    let guard = start_guard();
    let mut server = sh(&guard, ESCAPES).await;
    let mut other = sh(&guard, ESCAPES).await;
    let (pids, others) = (server.pids(2), other.pids(2));
    timeout(PATIENCE, server.child.group.end(Duration::from_millis(50))).await.unwrap();
    assert!(!pids.iter().any(|pid| alive(*pid)));
    assert!(others.iter().all(|pid| alive(*pid)), "another child of the same session name was touched");
    guard.stop().await;
    assert!(!others.iter().any(|pid| alive(*pid)));
}

#[tokio::test]
async fn a_dropped_group_is_ended_in_the_background() {
    let guard = start_guard();
    let mut server = sh(&guard, STUBBORN).await;
    let pids = server.pids(2);
    drop(server.child.group);
    eventually("the group to end", PATIENCE, || !pids.iter().any(|pid| alive(*pid))).await;
    guard.stop().await;
}

#[tokio::test]
async fn a_spawn_nobody_waits_for_leaves_no_child() {
    let guard = start_guard();
    let mut server = sh(&guard, "echo $PPID").await;
    let keeper = server.pids(1)[0];
    for polls in 0..20 {
        let mut spawn = Box::pin(launch(&guard, &["sh", "-c", STUBBORN], None));
        for _ in 0..polls {
            if futures::poll!(spawn.as_mut()).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(keeper, guard_pid(&guard));
    eventually("the children to end", PATIENCE, || children_of(keeper).is_empty()).await;
    guard.stop().await;
}

#[tokio::test]
async fn the_guard_ignores_what_a_terminal_sends() {
    let guard = start_guard();
    let mut server = sh(&guard, "read line; exit 4").await;
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        kill_process(guard_pid(&guard), signal).unwrap();
    }
    std::io::Write::write_all(&mut server.stdin, b"\n").unwrap();
    assert_eq!(server.exit().await, Exit::Code(4));
    guard.stop().await;
}

#[tokio::test]
async fn a_killed_guard_loses_its_children_and_is_replaced() {
    let guard = start_guard();
    let mut servers = [sh(&guard, STUBBORN).await, sh(&guard, ESCAPES).await];
    let mut pids: Vec<Pid> = servers.iter_mut().flat_map(|server| server.pids(2)).collect();
    let killed = guard_pid(&guard);
    pids.push(killed);
    kill_process(killed, Signal::KILL).unwrap();
    for server in &mut servers {
        assert_eq!(timeout(PROMISE, server.exit()).await.unwrap(), Exit::Lost);
    }
    eventually("everything to end", PROMISE, || !pids.iter().any(|pid| alive(*pid))).await;
    for server in &servers {
        timeout(PATIENCE, server.child.group.end(Duration::ZERO)).await.unwrap();
    }
    assert!(pids.iter().all(|pid| test_kill_process(*pid).is_err()), "a zombie is left");

    let mut next = sh(&guard, "exit 5").await;
    assert_eq!(next.exit().await, Exit::Code(5));
    assert_ne!(guard_pid(&guard), killed);
    guard.stop().await;
}

/// What children may outlive their trust by: one tick of the guard, and a kill, on a loaded machine.
const LATE: Duration = Duration::from_millis(500);

#[tokio::test]
async fn children_end_with_the_trust_that_the_guard_was_told_and_start_again_under_a_new_one() {
    // Invariant L1; durability.md 2.2, guard.
    let guard = start_leased_guard(None);
    let refused = launch(&guard, &["sh"], None).await.map(|_| ()).unwrap_err();
    assert!(matches!(&refused, SpawnError::HostUnavailable(why) if why.contains("trusted")), "{refused}");
    guard.trust_until(uptime() + PATIENCE);
    let mut servers = [sh(&guard, STUBBORN).await, sh(&guard, ESCAPES).await];
    let pids: Vec<Pid> = servers.iter_mut().flat_map(|server| server.pids(2)).collect();
    let until = uptime() + PROMISE;
    guard.trust_until(until);
    for server in &mut servers {
        assert!(matches!(server.exit().await, Exit::Signal(9)));
    }
    assert!(uptime() >= until, "trust held until then");
    eventually("everything to end", LATE, || !pids.iter().any(|pid| alive(*pid))).await;
    assert!(uptime() < until + LATE, "{:?} late", uptime() - until);
    assert!(matches!(launch(&guard, &["sh"], None).await, Err(SpawnError::HostUnavailable(_))));

    guard.trust_until(uptime() + PATIENCE);
    let mut next = sh(&guard, "exit 5").await;
    assert_eq!(next.exit().await, Exit::Code(5));
    guard.stop().await;
}

#[tokio::test]
async fn the_next_guard_is_told_the_trust_of_the_moment_and_holds_the_lock_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let lock = File::create(&path).unwrap();
    lock.try_lock().unwrap();
    let guard = start_leased_guard(Some(lock));
    guard.trust_until(uptime() + PATIENCE);
    let killed = {
        let mut server = sh(&guard, "exit 3").await;
        assert_eq!(server.exit().await, Exit::Code(3));
        guard_pid(&guard)
    };
    let is_held = || File::open(&path).unwrap().try_lock().is_err();
    assert!(is_held());
    kill_process(killed, Signal::KILL).unwrap();
    eventually("another guard", PATIENCE, || guard.pid().is_some() && guard_pid(&guard) != killed).await;
    let mut next = sh(&guard, "exit 5").await;
    assert_eq!(next.exit().await, Exit::Code(5));
    assert!(is_held());
    guard.stop().await;
    eventually("the lock to be free", PROMISE, || !is_held()).await;
}

#[tokio::test]
async fn a_lock_is_held_while_anything_of_a_killed_client_is_left() {
    // Durability.md 2.2, guard c.
    let mut client = alone("client_with_a_lock");
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let line = lines.find_map(|line| line.unwrap().strip_prefix("LOCK ").map(str::to_owned)).unwrap();
    let mut words = line.split(' ');
    let path = PathBuf::from(words.next().unwrap());
    let pids: Vec<Pid> = words.map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect();
    assert_eq!(pids.len(), 4);
    // A guard that stands still holds it as well.
    kill_process(pids[3], Signal::STOP).unwrap();
    client.kill().unwrap();
    client.wait().unwrap();
    let file = File::open(&path).unwrap();
    assert!(file.try_lock().is_err(), "the guard and its children are left");
    kill_process(pids[3], Signal::CONT).unwrap();
    eventually("the lock to be free", PROMISE, || file.try_lock().is_ok()).await;
    assert!(!pids[..3].iter().any(|pid| alive(*pid)), "the lock was free before the children were gone");
    std::fs::remove_file(path).unwrap();
}

#[tokio::test]
#[ignore = "a process of its own, started by another test"]
async fn client_with_a_lock() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(boot().to_string());
    let lock = File::create_new(&path).unwrap();
    lock.try_lock().unwrap();
    let guard = start_leased_guard(Some(lock));
    guard.trust_until(Duration::MAX);
    let mut servers = [sh(&guard, STUBBORN).await, sh(&guard, "echo $$; read line").await];
    let mut pids = servers[0].pids(2);
    pids.extend(servers[1].pids(1));
    pids.push(guard_pid(&guard));
    let words: Vec<String> = pids.iter().map(|pid| pid.as_raw_nonzero().to_string()).collect();
    println!("\nLOCK {} {}", path.display(), words.join(" "));
    let _ = timeout(PATIENCE, std::future::pending::<()>()).await;
}

#[tokio::test]
async fn a_start_kills_what_a_life_without_a_guard_left() {
    let sleeper = |boot: &str| {
        let mut command = Command::new("sleep");
        command.arg("1000").env("CARIBOU_BOOT", boot).env("CARIBOU_CHILD", format!("{boot}/1")).spawn().unwrap()
    };
    let first = start_guard();
    let mut server = sh(&first, "echo $CARIBOU_BOOT; read line").await;
    let mut boot = String::new();
    server.stdout.read_line(&mut boot).unwrap();
    let (mut guarded, mut left) = (sleeper(boot.trim()), sleeper("no-such-boot"));
    let second = start_guard();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&left.wait().unwrap()), Some(9));
    assert!(guarded.try_wait().unwrap().is_none());
    guarded.kill().unwrap();
    guarded.wait().unwrap();
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn nothing_starts_after_the_stop() {
    let guard = start_guard();
    let mut server = sh(&guard, STUBBORN).await;
    let pids = server.pids(2);
    guard.stop().await;
    assert!(!pids.iter().any(|pid| alive(*pid)));
    assert!(matches!(launch(&guard, &["sh"], None).await, Err(SpawnError::HostUnavailable(_))));
}

#[tokio::test]
async fn a_killed_client_leaves_no_child() {
    let mut client = alone("client_with_stubborn_children");
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let line = lines.find_map(|line| line.unwrap().strip_prefix("PIDS ").map(str::to_owned)).unwrap();
    let pids: Vec<Pid> = line.split(' ').map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect();
    assert_eq!(pids.len(), 5);
    assert!(pids.iter().all(|pid| alive(*pid)));
    client.kill().unwrap();
    // The guard goes last; another start on this machine would kill the others as well, only later.
    eventually("the guard to end", PROMISE, || !alive(pids[4])).await;
    assert!(!pids.iter().any(|pid| alive(*pid)), "the guard left before its children");
    client.wait().unwrap();
}

#[tokio::test]
#[ignore = "a process of its own, started by another test"]
async fn client_with_stubborn_children() {
    let guard = start_guard();
    let mut servers = [sh(&guard, STUBBORN).await, sh(&guard, ESCAPES).await];
    let mut pids: Vec<Pid> = servers.iter_mut().flat_map(|server| server.pids(2)).collect();
    pids.push(guard_pid(&guard));
    let words: Vec<String> = pids.iter().map(|pid| pid.as_raw_nonzero().to_string()).collect();
    println!("\nPIDS {}", words.join(" "));
    let _ = timeout(PATIENCE, std::future::pending::<()>()).await;
}

#[test]
fn three_hundred_children_leave_no_process_and_no_descriptor() {
    let mut client = alone("client_with_many_children");
    let mut out = String::new();
    client.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(client.wait().unwrap().success(), "{out}");
}

#[tokio::test]
#[ignore = "a process of its own, started by another test"]
async fn client_with_many_children() {
    let guard = start_guard();
    let mut first = sh(&guard, "exit 0").await;
    assert_eq!(first.exit().await, Exit::Code(0));
    first.child.group.end(Duration::ZERO).await;
    drop(first);
    let keeper = guard_pid(&guard);
    let before = (descriptors("self"), descriptors(&keeper.as_raw_nonzero().to_string()));

    let servers = futures::future::join_all((0..300).map(|_| sh(&guard, "echo $$; read line"))).await;
    assert_eq!(children_of(keeper).len(), 300);
    let endings = servers.into_iter().enumerate().map(|(n, mut server)| async move {
        assert_eq!(server.pids(1).len(), 1);
        if n % 2 == 0 {
            drop(server.stdin);
            assert_eq!(timeout(PATIENCE, server.child.exited).await.unwrap(), Exit::Code(1));
        }
        timeout(PATIENCE, server.child.group.end(PATIENCE)).await.unwrap();
    });
    futures::future::join_all(endings).await;

    assert_eq!(children_of(keeper), Vec::<i32>::new());
    assert_eq!((descriptors("self"), descriptors(&keeper.as_raw_nonzero().to_string())), before);
    guard.stop().await;
    assert!(test_kill_process(keeper).is_err(), "the guard is left");
}

/// Runs one ignored test in a process of its own.
fn alone(test: &str) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", test])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn descriptors(process: &str) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

/// Children of a process, zombies too.
fn children_of(parent: Pid) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let ppid = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)).unwrap_or_default().to_owned();
        ppid == parent.as_raw_nonzero().to_string()
    };
    pids.filter(is_child).collect()
}
