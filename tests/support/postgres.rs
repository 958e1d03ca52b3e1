//! A private PostgreSQL: own folder, own port, no durability, gone with the test.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::servers::{Running, folder_with, make_data_folder, unprivileged};
use crate::{Home, eventually, network};

/// How long a start may take on a loaded machine.
const START: Duration = Duration::from_secs(60);

/// What a test does without, since no machine fails under it. What was committed is written all the same: a test may end
/// PostgreSQL itself, and a store that forgets what it acknowledged is a fault of its own.
const FAST: [&str; 2] = ["fsync=off", "full_page_writes=off"];

/// A running PostgreSQL with a superuser `postgres` that needs no password.
#[derive(Debug)]
pub struct Postgres {
    port: u16,
    /// `None` between a stop and the next start.
    process: Option<Running>,
    settings: Vec<String>,
    home: Home,
}

impl Postgres {
    /// Makes a cluster and starts it.
    pub async fn start() -> Self {
        Self::start_with(&FAST).await
    }

    /// The same as an operator of a large one runs it, with all that durability costs: for measurements.
    pub async fn start_durable() -> Self {
        Self::start_with(&["shared_buffers=512MB"]).await
    }

    async fn start_with(settings: &[&str]) -> Self {
        let programs = folder_with(&["initdb", "postgres"]);
        let home = Home::new();
        let data = home.join("data");
        make_data_folder(&data);
        let made = unprivileged(programs.join("initdb"))
            .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--no-locale", "--username=postgres", "-D"])
            .arg(&data)
            .current_dir(home.path())
            .output()
            .expect("initdb can be run");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let port = network::free_port();
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut postgres = Self { port, process: None, settings, home };
        postgres.start_again().await;
        postgres
    }

    /// Ends it at once, as a failover would: its connections break, and what was committed stays.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Starts it again, with what it holds, on the same port.
    pub async fn start_again(&mut self) {
        let program = folder_with(&["initdb", "postgres"]).join("postgres");
        let settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        self.process = Some(Self::launch(&self.home, program, self.port, &settings));
        eventually(START, "PostgreSQL answers", async || self.look().await).await;
    }

    fn launch(home: &Home, program: PathBuf, port: u16, settings: &[&str]) -> Running {
        let log = File::create(home.join("postgres.log")).expect("a log can be written");
        let mut command = unprivileged(program);
        command.arg("-D").arg(home.join("data")).arg("-k").arg(home.path()).arg("-p").arg(port.to_string());
        // Statements of ours are longer than what it tells of them by default.
        let whole = "track_activity_query_size=16384";
        for setting in settings.iter().copied().chain(["listen_addresses=127.0.0.1", whole]) {
            command.args(["-c", setting]);
        }
        let log_too = log.try_clone().expect("a descriptor can be doubled");
        let child = command.current_dir(home.path()).stdout(log).stderr(log_too).spawn().expect("postgres can be run");
        Running::new(child, Signal::QUIT)
    }

    async fn look(&mut self) -> Option<()> {
        let is_running = self.process.as_mut().is_some_and(|process| !process.has_ended());
        assert!(is_running, "PostgreSQL ended: {}", self.log());
        self.ask("SELECT 1").await.is_ok().then_some(())
    }

    /// What it wrote to its log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.home.join("postgres.log")).unwrap_or_default()
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process id, for tests that freeze it.
    ///
    /// # Panics
    /// It was stopped.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("PostgreSQL runs").pid()
    }

    /// The address for clients.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs `sql` in the database `postgres` and answers with the first column of each row.
    ///
    /// # Errors
    /// The server does not answer, or answers with an error: its text.
    pub async fn ask(&self, sql: &str) -> anyhow::Result<Vec<String>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let parameters = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0";
        stream.write_all(&framed(None, parameters)).await?;
        wait_until_ready(&mut stream).await?;
        stream.write_all(&framed(Some(b'Q'), format!("{sql}\0").as_bytes())).await?;
        wait_until_ready(&mut stream).await
    }
}

/// A message of the PostgreSQL protocol: kind, length that counts itself, payload.
fn framed(kind: Option<u8>, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len() + 4).expect("a test's statement is short");
    kind.into_iter().chain(length.to_be_bytes()).chain(payload.iter().copied()).collect()
}

/// Reads to the next `ReadyForQuery` and collects the first column of the rows on the way.
async fn wait_until_ready(stream: &mut TcpStream) -> anyhow::Result<Vec<String>> {
    let mut rows = Vec::new();
    loop {
        let kind = stream.read_u8().await?;
        let length = stream.read_u32().await?;
        let mut payload = vec![0; usize::try_from(length)?.saturating_sub(4)];
        stream.read_exact(&mut payload).await?;
        match kind {
            b'Z' => return Ok(rows),
            b'E' => anyhow::bail!("{}", String::from_utf8_lossy(&payload).replace('\0', " ")),
            // Column count (2 bytes), then length (4 bytes) and text of the first column.
            b'D' => rows.push(String::from_utf8_lossy(first_column(&payload)).into_owned()),
            _ => {}
        }
    }
}

fn first_column(row: &[u8]) -> &[u8] {
    let length = row.get(2..6).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_be_bytes);
    row.get(6..6 + usize::try_from(length).unwrap_or(0)).unwrap_or_default()
}
