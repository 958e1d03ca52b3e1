//! A PostgreSQL and a Redis of one's own, on loopback and behind passwords that nobody else knows.
//!
//! Their folder goes with this process, and so does all that they hold. PostgreSQL does not run as root: it is then
//! started as `nobody`.

use std::fs::{File, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{Signal, geteuid};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::{interval, timeout};
use uuid::Uuid;

use super::child::{bound, end, unbound};
use super::programs::{NOBODY, Programs};

/// How long a server may take until it answers.
const START: Duration = Duration::from_secs(60);

/// How often it is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long it may take to end.
const END: Duration = Duration::from_secs(5);

/// The user of the database.
const USER: &str = "caribou";

/// A running server.
pub(super) struct Private {
    child: Child,
    /// Ends it without waiting for its clients.
    signal: Signal,
    /// Its address, with its password.
    pub(super) url: String,
}

impl Private {
    /// Makes a cluster of databases below `folder` and serves it.
    ///
    /// # Errors
    /// It cannot be made, or does not answer in time.
    pub(super) async fn postgres(programs: &Programs, folder: &Path) -> anyhow::Result<Self> {
        let home = own_folder(folder, "postgres")?;
        let (data, password) = (home.join("data"), password());
        let password_file = home.join("password");
        write_for_server(&password_file, &password)?;
        let mut making = as_server(programs, "initdb")?;
        making.args(["--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--username", USER]);
        making.arg("--pwfile").arg(&password_file).arg("-D").arg(&data).current_dir(&home);
        let made = timeout(START, making.output()).await.context("initdb takes too long")??;
        if !made.status.success() {
            bail!("initdb failed: {}", String::from_utf8_lossy(&made.stderr).trim());
        }
        let port = free_port().await?;
        let log_file = home.join("log");
        let log = File::create(&log_file)?;
        let mut serving = as_server(programs, "postgres")?;
        serving.arg("-D").arg(&data).arg("-k").arg(&home).args(["-p", &port.to_string()]);
        // What it holds is gone with this process anyway.
        serving.args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]).current_dir(&home);
        let child = serving.stdout(log.try_clone()?).stderr(log).spawn().context("postgres does not start")?;
        let url = format!("postgres://{USER}:{password}@127.0.0.1:{port}/postgres");
        let mut server = Self { child, signal: Signal::INT, url };
        // What its own `pg_ctl` waits for: the eighth line of this file.
        let state = data.join("postmaster.pid");
        let is_ready = async || {
            let text = std::fs::read_to_string(&state).unwrap_or_default();
            text.lines().nth(7).is_some_and(|line| line.trim() == "ready")
        };
        server.answers("PostgreSQL", is_ready, &log_file).await?;
        Ok(server)
    }

    /// Serves an empty Redis that saves nothing.
    ///
    /// # Errors
    /// It does not answer in time.
    pub(super) async fn redis(programs: &Programs, folder: &Path) -> anyhow::Result<Self> {
        let home = own_folder(folder, "redis")?;
        let (port, password) = (free_port().await?, password());
        let log_file = home.join("log");
        let log = File::create(&log_file)?;
        let mut serving = as_server(programs, "redis-server")?;
        // Its settings come by stdin: command lines can be read by others.
        serving.arg("-").current_dir(&home).stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        let mut child = serving.spawn().context("redis-server does not start")?;
        let settings = format!("bind 127.0.0.1\nport {port}\nrequirepass {password}\nsave \"\"\nappendonly no\n");
        let mut stdin = child.stdin.take().context("redis-server has no stdin")?;
        stdin.write_all(settings.as_bytes()).await.context("redis-server does not read its settings")?;
        drop(stdin);
        let url = format!("redis://:{password}@127.0.0.1:{port}");
        let mut server = Self { child, signal: Signal::TERM, url };
        let is_ready = async || TcpStream::connect(("127.0.0.1", port)).await.is_ok();
        server.answers("Redis", is_ready, &log_file).await?;
        Ok(server)
    }

    async fn answers(&mut self, name: &str, is_ready: impl AsyncFn() -> bool, log: &Path) -> anyhow::Result<()> {
        let last_words = || std::fs::read_to_string(log).unwrap_or_default().trim().to_owned();
        let mut looks = interval(LOOK_EVERY);
        let waiting = async {
            loop {
                looks.tick().await;
                if self.child.try_wait()?.is_some() {
                    bail!("{name} ended as it started: {}", last_words());
                }
                if is_ready().await {
                    return Ok(());
                }
            }
        };
        timeout(START, waiting).await.with_context(|| format!("{name} does not answer: {}", last_words()))?
    }

    /// Ends it.
    pub(super) async fn end(mut self) {
        end(&mut self.child, self.signal, END).await;
    }
}

/// A command for one of these programs, as whoever may run it.
fn as_server(programs: &Programs, name: &str) -> anyhow::Result<Command> {
    let program = programs.folder.join(name);
    let is_root = geteuid().is_root();
    let mut command = if is_root { unbound(program) } else { bound(program)? };
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    if let Some(libraries) = &programs.libraries {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    Ok(command)
}

/// A folder that only the server may look into.
fn own_folder(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let own = folder.join(name);
    std::fs::create_dir(&own)?;
    std::fs::set_permissions(&own, Permissions::from_mode(0o700))?;
    if geteuid().is_root() {
        // It must get there.
        std::fs::set_permissions(folder, Permissions::from_mode(0o711))?;
        chown(&own, Some(NOBODY), Some(NOBODY))?;
    }
    Ok(own)
}

fn write_for_server(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    if geteuid().is_root() {
        chown(path, Some(NOBODY), Some(NOBODY))?;
    }
    Ok(())
}

/// 244 bits by chance, fit for any file and address.
pub(super) fn password() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// A port that nobody used a moment ago.
async fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0)).await?.local_addr()?.port())
}
