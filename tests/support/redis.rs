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
    process: Running,
    home: Home,
}

impl Redis {
    /// Starts one.
    pub async fn start() -> Self {
        let program = folder_with(&["redis-server"]).join("redis-server");
        let home = Home::new();
        let data = home.join("data");
        make_data_folder(&data);
        let port = network::free_port();
        let log = File::create(home.join("redis.log")).expect("a log can be written");
        let child = unprivileged(program)
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string(), "--dir"])
            .arg(data)
            .stdout(log)
            .spawn()
            .expect("redis-server can be run");
        let mut redis = Self { port, process: Running::new(child, Signal::KILL), home };
        eventually(START, "Redis answers", async || redis.look().await).await;
        redis
    }

    async fn look(&mut self) -> Option<()> {
        let log = || std::fs::read_to_string(self.home.join("redis.log")).unwrap_or_default();
        assert!(!self.process.has_ended(), "Redis ended: {}", log());
        self.ask("PING").await.is_ok_and(|answer| answer == "+PONG").then_some(())
    }

    /// Its process id, for tests that stop or freeze it.
    pub fn pid(&self) -> u32 {
        self.process.pid()
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
