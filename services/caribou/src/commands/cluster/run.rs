//! From nothing to a cluster that answers, and back.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use caribou_oauth::{CREDENTIALS_KEY, Key};
use caribou_store::Location;
use clap::Args;
use tokio::time::timeout;

use super::private::{Private, password};
use super::programs::{self, SERVERS_DIR};
use super::seats::{self, Seat, Shared};
use crate::assemble;
use crate::commands::arguments::{SettingsArguments, Token};
use crate::commands::output;
use crate::demo;
use crate::lifecycle::Signals;
use crate::settings::Settings;

/// How long the schema may take.
const MIGRATE: Duration = Duration::from_secs(120);

/// The other name of the key that encrypts what is stored.
const KEY_ALIAS: &str = "DEER_FLOW_CREDENTIALS_KEY";

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// How many replicas
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=9))]
    replicas: u8,
    /// The PostgreSQL that they share; without it what the settings name (CARIBOU_DATABASE_URL), else a private one.
    /// Better given by the variable when it holds a password, since others on this machine can read command lines
    #[arg(long, value_name = "URL")]
    postgres: Option<Token>,
    /// The Redis that they share; without it what the settings name (CARIBOU_REDIS_URL), else a private one
    #[arg(long, value_name = "URL")]
    redis: Option<Token>,
    /// Caribou's own settings [env: CARIBOU_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The file that names the MCP servers [env: CARIBOU_EXTENSIONS_CONFIG_PATH]; without any, a demo server is there
    #[arg(long, value_name = "FILE")]
    extensions: Option<PathBuf>,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::take()?;
    let folder = tempfile::Builder::new().prefix("caribou-cluster-").tempdir().context("no folder for the cluster")?;
    let mut running = Running::default();
    let ended = tokio::select! {
        ended = live(&arguments, folder.path(), &mut running) => ended,
        () = signals.next() => {
            output::note("stopping; a second Ctrl-C ends at once");
            Ok(())
        }
    };
    tokio::select! {
        () = running.stop() => {}
        // What is left is killed as it is dropped.
        () = signals.next() => bail!("stopped at once"),
    }
    ended.map(|()| ExitCode::SUCCESS)
}

/// What must be ended.
#[derive(Default)]
struct Running {
    seats: Vec<Seat>,
    servers: Vec<Private>,
}

impl Running {
    /// The replicas first: their end is put on record.
    async fn stop(self) {
        seats::stop(self.seats).await;
        for server in self.servers {
            server.end().await;
        }
    }
}

/// Starts everything and watches it. Resolves when no replica is left.
async fn live(arguments: &Arguments, folder: &Path, running: &mut Running) -> anyhow::Result<()> {
    let Arguments { config, extensions, .. } = arguments;
    let named = SettingsArguments { config: config.clone(), extensions: extensions.clone(), data_dir: None };
    let settings = assemble::accept(named.load(None)?)?;
    let mut shared = Shared { variables: shared_variables(folder), arguments: files(arguments, &settings, folder)? };
    let (postgres, redis) = servers(arguments, &settings, folder).await?;
    for (name, server) in [("CARIBOU_DATABASE_URL", postgres), ("CARIBOU_REDIS_URL", redis)] {
        match server {
            Server::AsSet => {}
            Server::At(url) => shared.variables.push((name, url)),
            Server::Private(server) => {
                shared.variables.push((name, server.url.clone()));
                running.servers.push(server);
            }
        }
    }
    let has_key = [CREDENTIALS_KEY, KEY_ALIAS].into_iter().any(|name| variable(name).is_some());
    // What it encrypts goes with the private database; in any other one nobody could read it any more.
    if !has_key && !running.servers.is_empty() && arguments.postgres.is_none() && !names_postgres(&settings) {
        shared.variables.push((CREDENTIALS_KEY, Key::generate()?.expose().to_string()));
    }
    migrate(&shared).await?;
    for number in 1..=arguments.replicas {
        running.seats.push(seats::start(number, &shared, folder).await?);
    }
    introduce(&running.seats)?;
    seats::watch(&mut running.seats).await;
    bail!("no replica is left")
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn names_postgres(settings: &Settings) -> bool {
    matches!(settings.database_location(), Location::Postgres(_))
}

/// What all replicas are told whatever they share.
fn shared_variables(folder: &Path) -> Vec<(&'static str, String)> {
    vec![
        ("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0".to_owned()),
        // Whoever tries what happens when one is killed does not want to wait for long.
        ("CARIBOU_CLUSTER_PROFILE", "fast".to_owned()),
        ("CARIBOU_CLUSTER_SECRET", password()),
        // They all end together, so nobody is there to take over.
        ("CARIBOU_SHUTDOWN_DRAIN_SECONDS", "1".to_owned()),
        ("CARIBOU_THREADS_ROOT", folder.join("threads").to_string_lossy().into_owned()),
    ]
}

/// The arguments that name the files of all replicas. Where no file names servers there is that of the demo.
fn files(arguments: &Arguments, settings: &Settings, folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut add = |flag: &str, file: &Path| files.extend([flag.to_owned(), file.to_string_lossy().into_owned()]);
    if let Some(file) = &arguments.config {
        add("--config", file);
    }
    match &arguments.extensions {
        Some(file) => add("--extensions", file),
        None if assemble::find_servers(settings)?.is_none() => {
            let file = folder.join("extensions_config.json");
            std::fs::write(&file, demo::configuration(&std::env::current_exe()?, folder))?;
            add("--extensions", &file);
        }
        None => {}
    }
    Ok(files)
}

/// Something that replicas share.
enum Server {
    /// The settings say where it is, or that there is none.
    AsSet,
    /// The command line says so.
    At(String),
    /// It was started for them.
    Private(Private),
}

/// PostgreSQL and Redis: as they are named, else private ones.
async fn servers(arguments: &Arguments, settings: &Settings, folder: &Path) -> anyhow::Result<(Server, Server)> {
    let (own, path) = (variable(SERVERS_DIR).map(PathBuf::from), std::env::var_os("PATH"));
    let find = |names: &[&str]| programs::find(names, own.as_deref(), path.as_ref());
    let postgres = match &arguments.postgres {
        Some(url) => Server::At(url.0.expose().to_owned()),
        None if names_postgres(settings) => Server::AsSet,
        None => {
            let programs = find(&["initdb", "postgres"]).with_context(|| {
                format!(
                    "there is no PostgreSQL: name one by --postgres, or install its server, or set {SERVERS_DIR} to a \
                     folder laid out as /usr that holds it"
                )
            })?;
            let starting = output::wait("starting a private PostgreSQL", Private::postgres(&programs, folder));
            Server::Private(starting.await?)
        }
    };
    let redis = match (&arguments.redis, find(&["redis-server"])) {
        (Some(url), _) => Server::At(url.0.expose().to_owned()),
        (None, _) if settings.redis.url.is_some() => Server::AsSet,
        (None, Some(programs)) => Server::Private(Private::redis(&programs, folder).await?),
        (None, None) => {
            output::note("there is no Redis: resets reach the other replicas within a second or two");
            Server::AsSet
        }
    };
    Ok((postgres, redis))
}

/// Gives the database its schema.
async fn migrate(shared: &Shared) -> anyhow::Result<()> {
    let migrating = shared.command("migrate")?.stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let migrated = output::wait("giving the database its schema", timeout(MIGRATE, migrating)).await;
    let migrated = migrated.context("the schema takes too long")??;
    if !migrated.status.success() {
        bail!("the database cannot be used: {}", String::from_utf8_lossy(&migrated.stderr).trim());
    }
    Ok(())
}

/// Shows who is where, and what to try.
fn introduce(seats: &[Seat]) -> std::io::Result<()> {
    let rows: Vec<_> = seats.iter().map(|seat| [seat.name.clone(), seat.url.clone(), seat.pid.to_string()]).collect();
    output::table(["REPLICA", "REST", "PID"], &rows)?;
    let (Some(first), Some(last)) = (seats.first(), seats.last()) else { return Ok(()) };
    output::note(format_args!(
        "\nA trial on this machine alone: replicas speak unencrypted, and private servers forget everything.\n\n\
         caribou tools list --server {}\n\
         caribou replicas --server {}\n\
         kill -9 {}    # the others go on, and take over what it held within 10 s\n\n\
         Ctrl-C ends everything.\n",
        first.url, last.url, first.pid
    ));
    Ok(())
}
