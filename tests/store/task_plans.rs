//! What claims of tasks cost PostgreSQL when there are many: read by index, whatever the parameters, and little of it
//! (durability.md §9).

use std::time::Duration;

use caribou_core::task::Duty;
use caribou_ports::store::{ClaimTasks, TaskFilter, Tasks as _, Unchanged};
use caribou_store::SqlStore;
use caribou_tests::eventually;
use sqlx::{Connection as _, PgConnection};

use crate::following::{LONG, OURS, THEIRS, WITHIN, all_lanes, ann, wanted};
use crate::opened::Database;

/// Buffers that a claim may read for each row it gives out.
const BUFFERS_EACH: u64 = 25;

/// Buffers that a claim of one lane may read that finds nothing.
const BUFFERS_EMPTY: u64 = 10;

/// Buffers that the select of a claim may read while somebody holds an old snapshot, and so may a look at what is next
/// due (durability.md §8, A11).
const BUFFERS_HELD: u64 = 200;

/// A replica that has ended.
const ENDED: &str = "019ad000-0000-7000-8000-00000000000c";

/// Tasks that are followed, of which `due` are due in the first shard, each so many milliseconds after the one before,
/// and the others in an hour.
async fn filled(database: &Database, rows: u32, due: u32, apart_ms: u32) -> SqlStore {
    let store = database.migrated().await;
    let fill = format!(
        "INSERT INTO mcp_task (task_id, submit_key, user_id, thread_id, server, driver, task_name, configuration,
                               is_pinned, remote_id, status)
         SELECT md5(n::text)::uuid, md5('k' || n)::uuid, 'u' || n % 1000, 't' || n % 50, 'jobs', 'ordinary-tools', 'r', 1,
                false, 'r' || n, 2
         FROM generate_series(1, {rows}) n;
         INSERT INTO mcp_work (task_id, lane, due_at, configuration)
         SELECT md5(n::text)::uuid, CASE WHEN n <= {due} THEN 256 ELSE 256 + n % 8 END,
                CASE WHEN n <= {due} THEN now() - interval '1 second' - ({due} - n) * {apart_ms} * interval '1 ms'
                     ELSE now() + interval '1 hour' END, 1
         FROM generate_series(1, {rows}) n;"
    );
    database.ask(&fill).await;
    for table in ["mcp_task", "mcp_work"] {
        database.ask(&format!("ANALYZE {table}")).await;
    }
    store
}

/// The last statement that the store has sent.
async fn last_statement(database: &Database) -> String {
    let last =
        "SELECT query FROM pg_stat_activity WHERE application_name = 'caribou' ORDER BY query_start DESC LIMIT 1";
    database.ask(last).await.remove(0)
}

/// The plan of a statement, executed without knowledge of its parameters.
async fn executed(database: &Database, statement: &str, types: &str, parameters: &str) -> Vec<String> {
    let explain = format!(
        "SET plan_cache_mode = force_generic_plan; PREPARE asked({types}) AS {statement};
         EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) EXECUTE asked({parameters})"
    );
    database.ask(&explain).await
}

/// The buffers that the first node of these read, with all below it.
fn buffers(plan: &[String]) -> u64 {
    let buffers = plan.iter().find_map(|line| line.trim().strip_prefix("Buffers: shared ")).unwrap();
    let count = |word: &str| -> Option<u64> {
        word.strip_prefix("hit=").or(word.strip_prefix("read=")).and_then(|count| count.parse().ok())
    };
    buffers.split(' ').filter_map(count).sum()
}

/// The plan of a claim of these lanes from these floors on, executed.
async fn claimed_from(database: &Database, statement: &str, lanes: &str, floors: &str, rows: u64) -> Vec<String> {
    let parameters = format!("'{{{lanes}}}', '{{{floors}}}', 0, '{{}}', 60000, '{OURS}'");
    let types = "smallint[], bigint[], bigint, bigint[], bigint, uuid";
    let plan = executed(database, statement, types, &parameters).await;
    let found = format!("rows={rows} loops=1");
    assert!(plan[0].starts_with("Update on mcp_work") && plan[0].contains(&found), "{found} of\n{}", plan.join("\n"));
    plan
}

/// The same from the beginning, and the buffers it read.
async fn claimed(database: &Database, statement: &str, lanes: &str, rows: u64) -> (String, u64) {
    let floors = lanes.split(',').map(|_| "0").collect::<Vec<_>>().join(",");
    let plan = claimed_from(database, statement, lanes, &floors, rows).await;
    (plan.join("\n"), buffers(&plan))
}

/// Pins two thirds of what is due: one third to a replica that lives and is left what is its own, one to one that ended.
async fn pin(database: &Database, rows: u32) {
    let pin = format!(
        "INSERT INTO replica (boot_id, host, version, state, dead_at)
         VALUES ('{THEIRS}', 'h', '0', 1, NULL), ('{ENDED}', 'h', '0', 3, clock_timestamp());
         UPDATE mcp_work SET pinned_to = CASE WHEN n % 3 = 0 THEN '{THEIRS}'::uuid ELSE '{ENDED}'::uuid END
         FROM generate_series(1, {rows}) n WHERE task_id = md5(n::text)::uuid AND n % 3 < 2 AND due_at < clock_timestamp();"
    );
    database.ask(&pin).await;
    database.ask("ANALYZE mcp_work").await;
}

async fn check(rows: u32) {
    let database = Database::postgres().await;
    let store = filled(&database, rows, 2_000, 0).await;
    let claim = ClaimTasks { at_most: 64, ..wanted(OURS, Duty::Poll, LONG) };
    assert_eq!(store.claim_due(claim).await.unwrap().len(), 64);
    let statement = last_statement(&database).await;

    let (plan, buffers) = claimed(&database, &statement, "256", 64).await;
    assert!(!plan.contains("Seq Scan on mcp_") && plan.contains("mcp_work_due"), "{plan}");
    // Among few rows, reading all that are due is as good.
    assert!(rows < 1_000_000 || !plan.contains("Sort"), "read in the order of the index\n{plan}");
    assert!(buffers <= 64 * BUFFERS_EACH, "{buffers} buffers for 64 rows\n{plan}");
    let (plan, buffers) = claimed(&database, &statement, "256,257,258,259,260,261,262,263", 64).await;
    assert!(!plan.contains("Seq Scan on mcp_"), "{plan}");
    assert!(buffers <= 64 * BUFFERS_EACH, "{buffers} buffers for 64 rows of 8 shards\n{plan}");
    pin(&database, rows).await;
    let (plan, buffers) = claimed(&database, &statement, "256", 64).await;
    assert!(!plan.contains("Seq Scan on mcp_") && plan.contains("mcp_work_due"), "{plan}");
    assert!(rows < 1_000_000 || !plan.contains("Sort"), "read in the order of the index\n{plan}");
    assert!(buffers <= 64 * BUFFERS_EACH, "{buffers} buffers for 64 rows among such as are pinned\n{plan}");
    let (plan, buffers) = claimed(&database, &statement, "257", 0).await;
    assert!(!plan.contains("Seq Scan on mcp_"), "{plan}");
    assert!(buffers <= BUFFERS_EMPTY, "{buffers} buffers for nothing\n{plan}");
}

#[tokio::test]
async fn a_claim_among_twenty_thousand_tasks_reads_little() {
    check(20_000).await;
}

#[tokio::test]
#[ignore = "fills a database with a million tasks: run it with --run-ignored all"]
async fn a_claim_among_a_million_tasks_reads_little() {
    check(1_000_000).await;
}

/// Polls 64 tasks that are due, none of which is due again in this test.
async fn poll(store: &SqlStore) {
    let claim = ClaimTasks { at_most: 64, ..wanted(OURS, Duty::Poll, LONG) };
    let claimed = store.claim_due(claim).await.unwrap();
    assert_eq!(claimed.len(), 64);
    let unchanged = claimed.into_iter().map(|task| Unchanged { claim: task.claim, again: LONG * 6 }).collect();
    assert_eq!(store.keep(unchanged).await.unwrap(), []);
}

/// The floors of the last statement with so many parameters that PostgreSQL has put on record.
fn floors(log: &str, parameters: u32) -> Option<String> {
    let (last, beyond) = (format!("${parameters} = "), format!("${} = ", parameters + 1));
    let is_it = |line: &&str| line.contains("DETAIL:  parameters: ") && line.contains(&last) && !line.contains(&beyond);
    let line = log.lines().rfind(is_it)?;
    let floors = line.split_once("$2 = '{")?.1.split_once("}'")?.0;
    // Now and then it starts from the beginning.
    floors.split(',').all(|floor| floor != "0").then(|| floors.to_owned())
}

/// A snapshot is held while a thousand polls a second are settled for so many seconds. What counts is how far apart the
/// dead rows are in the index, so the polls themselves need not take that long.
async fn check_with_held_snapshot(rows: u32, seconds: u32) {
    let polls = seconds * 1_000;
    let database = Database::postgres().await;
    let store = filled(&database, rows, polls + 2_000, 1).await;
    store.claim_due(ClaimTasks { at_most: 64, ..wanted(OURS, Duty::Poll, LONG) }).await.unwrap();
    let claim = last_statement(&database).await;
    let mut holder = PgConnection::connect(&database.address()).await.unwrap();
    let hold = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM mcp_work WHERE lane = 0";
    sqlx::raw_sql(hold).execute(&mut holder).await.unwrap();
    for _ in 0..polls / 64 {
        poll(&store).await;
    }
    for statement in ["ALTER SYSTEM SET log_min_duration_statement = 0", "SELECT pg_reload_conf()"] {
        database.server().ask(statement).await.unwrap();
    }
    let (of_claim, of_look) = eventually(WITHIN, "a look and a claim from their floors", async || {
        store.next_due(Duty::Poll.lanes().collect()).await.unwrap();
        poll(&store).await;
        let log = database.server().log();
        floors(&log, 6).zip(floors(&log, 2))
    })
    .await;
    store.next_due(Duty::Poll.lanes().collect()).await.unwrap();
    let look = last_statement(&database).await;
    let lanes = Duty::Poll.lanes().map(|lane| lane.number().to_string()).collect::<Vec<_>>().join(",");
    let arrays = format!("'{{{lanes}}}', '{{{of_look}}}'");
    let plan = executed(&database, &look, "smallint[], bigint[]", &arrays).await;
    assert!(buffers(&plan) <= BUFFERS_HELD, "a look from {of_look}\n{}", plan.join("\n"));
    let plan = claimed_from(&database, &claim, &lanes, &of_claim, 64).await;
    let select = plan.iter().position(|line| line.contains("CTE due")).unwrap();
    let held = buffers(&plan[select..]);
    assert!(held <= BUFFERS_HELD, "{held} buffers from {of_claim}\n{}", plan.join("\n"));
    let zeros = of_claim.split(',').map(|_| "0").collect::<Vec<_>>().join(",");
    let plan = claimed_from(&database, &claim, &lanes, &zeros, 64).await;
    let whole = buffers(&plan[select..]);
    println!("{seconds} s held: {held} buffers from the floor, {whole} from the beginning");
    assert!(whole > held + u64::from(polls / 200), "the snapshot holds nothing: {held}, {whole}\n{}", plan.join("\n"));
    holder.close().await.unwrap();
}

#[tokio::test]
async fn a_claim_reads_little_while_a_snapshot_is_held_for_some_seconds() {
    // Durability.md 1.8.
    check_with_held_snapshot(30_000, 20).await;
}

#[tokio::test]
#[ignore = "polls sixty thousand tasks of a million: run it with --run-ignored all"]
async fn a_claim_reads_little_while_a_snapshot_is_held_for_a_minute() {
    // Durability.md 1.8, §8 (A11).
    check_with_held_snapshot(1_000_000, 60).await;
}

#[tokio::test]
async fn every_other_look_at_many_tasks_goes_by_an_index() {
    let database = Database::postgres().await;
    let store = filled(&database, 20_000, 2_000, 0).await;
    let all = TaskFilter::default;
    let (user, thread) = (Some(ann().user), Some(ann().thread));
    let mut plans = Vec::new();
    store.next_due(all_lanes()).await.unwrap();
    plans.push(crate::plans::last_plan(&database).await);
    store.take_back(OURS.into(), Duration::from_secs(60)).await.unwrap();
    plans.push(crate::plans::last_plan(&database).await);
    for filter in [all(), TaskFilter { user: user.clone(), ..all() }, TaskFilter { user, thread, ..all() }] {
        store.list_tasks(filter, None, 20).await.unwrap();
        plans.push(crate::plans::last_plan(&database).await);
    }
    for plan in plans {
        let whole =
            plan.lines().find(|line| line.contains("Seq Scan on mcp_task") || line.contains("Seq Scan on mcp_work"));
        assert_eq!(whole, None, "{plan}");
    }
}
