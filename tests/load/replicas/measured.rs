//! Two replicas that share sessions, one of which holds all of them.
//!
//! Owns the interleaving: calls by both doors get short windows in turn, so that a machine that gets slower in the
//! meantime slows both alike. What a database was asked is read from its own statistics.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use caribou_tests::{Caribou, Postgres, Redis, Setup, network};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use tokio::task::block_in_place;
use tokio::time::timeout;

use super::plan::Plan;
use super::reach;
use super::report::{Line, Report, Resets, Rows};
use crate::bare::Bare;
use crate::call::{HttpCaller, USER};
use crate::proc::cpu_below;
use crate::sample::Samples;
use crate::yardstick::Yardstick;

/// The server, and its tool as Caribou shows it.
const SERVER: &str = "echo";
const TOOL: &str = "echo_echo";

/// Keys: callers share them.
const THREADS: usize = 8;

/// Windows by each door for a figure.
const ROUNDS: u32 = 6;

/// Before the first reading.
const WARM_UP: Duration = Duration::from_secs(1);

/// Statistics of the database are this late at most.
const STATISTICS: Duration = Duration::from_secs(2);

/// Long enough for several renewals.
const RENEWALS: Duration = Duration::from_secs(12);

const SECRET: &str = "a-secret-of-this-measurement-alone-and-long-enough";

/// Measures.
///
/// # Errors
/// Something cannot be started, or a call is not answered as it should be.
pub(super) async fn measure(program: PathBuf, plan: &Plan, length: Duration) -> anyhow::Result<Report> {
    ensure!(program.is_file(), "there is no {}: build it, or name one with --caribou", program.display());
    let postgres = Postgres::start_durable().await;
    let redis = Redis::start().await;
    let (url, cache) = (postgres.url("postgres"), redis.url());
    let owner = replica(&program, [&url, &cache], true).await?;
    let other = replica(&program, [&url, &cache], false).await?;
    let mut database = PgConnection::connect(&url).await.context("connecting to the database")?;
    let holder = hold(&owner, &other).await?;
    let before = block_in_place(Yardstick::take)?;
    let mut lines = Vec::new();
    for &in_flight in &plan.concurrency {
        lines.push(compared(&owner, &other, &mut database, in_flight, length).await?);
    }
    let yardsticks = vec![before, block_in_place(Yardstick::take)?];
    let rows = match plan.rows {
        0 => None,
        rows => Some(on_record(&mut database, &holder, rows).await?),
    };
    let resets = match plan.resets {
        0 => None,
        resets => Some(Resets::new(reach::measure(&owner, 2, resets).await?)),
    };
    Ok(Report { yardsticks, lines, rows, resets })
}

async fn replica(program: &std::path::Path, [url, cache]: [&str; 2], migrates: bool) -> anyhow::Result<Caribou> {
    let port = network::free_port();
    let settings = format!("cluster: {{profile: fast, listen: \"127.0.0.1:{port}\"}}\naudit: {{enabled: false}}\n");
    let this = std::env::current_exe().context("finding this program")?;
    let entry = json!({ "command": this, "args": ["echo-stdio"] });
    let setup = Setup::new().program(program.to_owned()).settings(&settings).server(SERVER, entry);
    let setup = setup.variable("CARIBOU_DATABASE_URL", url).variable("CARIBOU_REDIS_URL", cache);
    let setup = setup.variable("CARIBOU_CLUSTER_SECRET", SECRET);
    if migrates {
        let migrated = setup.command(&["migrate"]).output().await.context("running `caribou migrate`")?;
        ensure!(migrated.status.success(), "caribou migrate: {}", String::from_utf8_lossy(&migrated.stderr));
    }
    Ok(setup.start().await)
}

/// Has `owner` open the session of every thread, and makes sure that `other` finds it there. The life that holds them.
async fn hold(owner: &Caribou, other: &Caribou) -> anyhow::Result<String> {
    let mut holder = String::new();
    for thread in 0..THREADS {
        for door in [owner, other] {
            let body = json!({
                "name": TOOL, "arguments": { "message": "m" }, "user_id": USER, "thread_id": format!("t{thread}"),
            });
            let asked = network::http_client().post(format!("{}/api/mcp/tools/call", door.url())).json(&body);
            let told: Value = asked.send().await.context("a first call")?.json().await.context("its answer")?;
            let held = told.pointer("/session/replica").and_then(Value::as_str);
            let held = held.with_context(|| format!("a first call was answered with {told}"))?;
            if holder.is_empty() {
                held.clone_into(&mut holder);
            }
            ensure!(held == holder, "the session of thread {thread} is not where it was opened: {told}");
        }
    }
    Ok(holder)
}

/// The same calls by both doors, in turn.
async fn compared(
    owner: &Caribou,
    other: &Caribou,
    database: &mut PgConnection,
    in_flight: u16,
    length: Duration,
) -> anyhow::Result<Line> {
    let (mut local, mut forwarded) = (Door::of(owner, in_flight)?, Door::of(other, in_flight)?);
    for door in [&mut local, &mut forwarded] {
        block_in_place(|| door.run(WARM_UP))?;
        door.samples = Samples::default();
    }
    let mut bare = Bare::start(in_flight)?;
    let windows = if bare.is_some() { 3 } else { 2 };
    let mut bare_calls = bare.as_ref().map(|_| (0, Duration::ZERO));
    let before = looked_up(database).await?;
    for round in 1..=ROUNDS {
        eprintln!("{in_flight} in flight, round {round} of {ROUNDS}");
        for door in [&mut local, &mut forwarded] {
            let used = cpu_below(owner.pid())? + cpu_below(other.pid())?;
            block_in_place(|| door.run(length / ROUNDS))?;
            door.cpu += cpu_below(owner.pid())? + cpu_below(other.pid())? - used;
        }
        if let (Some(bare), Some((calls, cpu))) = (&mut bare, &mut bare_calls) {
            let (answered, used) = block_in_place(|| bare.run(length / ROUNDS))?;
            *calls += answered;
            *cpu += used;
        }
    }
    let lookups = looked_up(database).await?.saturating_sub(before);
    Ok(Line::new(in_flight, local.figures(), forwarded.figures(), bare_calls, (lookups, length * windows)))
}

/// The callers by one door.
struct Door {
    callers: Vec<HttpCaller>,
    samples: Samples,
    cpu: Duration,
}

impl Door {
    fn of(caribou: &Caribou, in_flight: u16) -> anyhow::Result<Self> {
        let address: SocketAddr = caribou.url().trim_start_matches("http://").parse().context("an address")?;
        ensure!(address.ip() == Ipv4Addr::LOCALHOST, "{address} is not on loopback");
        let callers = (0..usize::from(in_flight))
            .map(|n| HttpCaller::through(address, TOOL, &format!("t{}", n % THREADS)))
            .collect::<anyhow::Result<_>>()?;
        Ok(Self { callers, samples: Samples::default(), cpu: Duration::ZERO })
    }

    fn run(&mut self, length: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + length;
        thread::scope(|scope| {
            let running: Vec<_> = self.callers.iter_mut().map(|caller| scope.spawn(move || caller.run(end))).collect();
            for caller in running {
                self.samples.absorb(caller.join().map_err(|_| anyhow!("a caller panicked"))??);
            }
            Ok(())
        })
    }

    fn figures(self) -> (Samples, Duration) {
        (self.samples, self.cpu)
    }
}

/// How often the database has looked into the table of sessions so far.
async fn looked_up(database: &mut PgConnection) -> anyhow::Result<u64> {
    pass(STATISTICS).await;
    read(database, "SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0)", "mcp_session").await
}

async fn read(database: &mut PgConnection, what: &str, table: &str) -> anyhow::Result<u64> {
    let text = format!("{what} FROM pg_stat_user_tables WHERE relname = $1");
    sqlx::query("SELECT pg_stat_clear_snapshot()").execute(&mut *database).await?;
    let read: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(text)).bind(table).fetch_one(database).await?;
    u64::try_from(read).context("a negative count")
}

/// Puts so many sessions on record as held by `holder`, and counts what its renewals write.
async fn on_record(database: &mut PgConnection, holder: &str, rows: u32) -> anyhow::Result<Rows> {
    eprintln!("{rows} sessions on record, {} s", RENEWALS.as_secs());
    sqlx::query(
        "INSERT INTO mcp_session (session, server, user_id, thread_id, owner, epoch, taken_at)
         SELECT sha256(convert_to('row-' || n, 'UTF8')), 'echo', 'nobody', 'row-' || n, $1::uuid, 1, clock_timestamp()
         FROM generate_series(1, $2) AS n",
    )
    .bind(holder)
    .bind(i64::from(rows))
    .execute(&mut *database)
    .await
    .context("writing the sessions")?;
    pass(STATISTICS).await;
    let written = "SELECT n_tup_upd + n_tup_ins + n_tup_del";
    let before = (read(database, written, "mcp_session").await?, read(database, written, "replica").await?);
    pass(RENEWALS).await;
    pass(STATISTICS).await;
    let after = (read(database, written, "mcp_session").await?, read(database, written, "replica").await?);
    Ok(Rows { rows, sessions_written: after.0 - before.0, renewals: after.1 - before.1 })
}

/// Lets time pass: what is measured happens by itself.
async fn pass(length: Duration) {
    let _ = timeout(length, std::future::pending::<()>()).await;
}
