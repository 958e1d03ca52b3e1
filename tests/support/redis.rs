//! A private Redis: own folder, own port, nothing saved, gone with the test.

use std::fs::File;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::servers::{Running, folder_with, make_data_folder, unprivileged};
use crate::{Home, eventually, network};

/// How long a start may take on a loaded machine.
const START: Duration = Duration::from_secs(30);

/// A running Redis.
#[derive(Debug)]
pub struct Redis {
    port: u16,
    /// `None` between a death and the next start.
    process: Option<Running>,
    home: Home,
}

impl Redis {
    /// Starts one.
    pub async fn start() -> Self {
        let home = Home::new();
        make_data_folder(&home.join("data"));
        let mut redis = Self { port: network::free_port(), process: None, home };
        redis.start_again().await;
        redis
    }

    /// Kills it as a crash would; what it held is gone.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again on the same port, empty.
    pub async fn start_again(&mut self) {
        let program = folder_with(&["redis-server"]).join("redis-server");
        let log = File::create(self.home.join("redis.log")).expect("a log can be written");
        let child = unprivileged(program)
            .args([
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
                "--port",
                &self.port.to_string(),
                "--dir",
            ])
            .arg(self.home.join("data"))
            .stdout(log)
            .spawn()
            .expect("redis-server can be run");
        self.process = Some(Running::new(child, Signal::KILL));
        eventually(START, "Redis answers", async || self.look().await).await;
    }

    async fn look(&mut self) -> Option<()> {
        let log = || std::fs::read_to_string(self.home.join("redis.log")).unwrap_or_default();
        assert!(self.process.as_mut().is_some_and(|process| !process.has_ended()), "Redis ended: {}", log());
        self.ask("PING").await.is_ok_and(|answer| answer == "+PONG").then_some(())
    }

    /// Its process id, for tests that freeze it.
    ///
    /// # Panics
    /// It was killed.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("Redis runs").pid()
    }

    /// The address for clients.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends one command line and answers with the first line that comes back.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn ask(&self, command: &str) -> anyhow::Result<String> {
        let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", self.port)).await?);
        stream.write_all(format!("{command}\r\n").as_bytes()).await?;
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        Ok(line.trim_end().to_owned())
    }
}
