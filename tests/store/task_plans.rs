//! What claims of tasks cost PostgreSQL when there are many: read by index, whatever the parameters, and little of it
//! (durability.md §9).

use std::time::Duration;

use caribou_core::task::Duty;
use caribou_ports::store::{ClaimTasks, TaskFilter, Tasks as _};
use caribou_store::SqlStore;

use crate::following::{LONG, OURS, all_lanes, ann, wanted};
use crate::opened::Database;

/// Buffers that a claim may read for each row it gives out.
const BUFFERS_EACH: u64 = 25;

/// Buffers that a claim of one lane may read that finds nothing.
const BUFFERS_EMPTY: u64 = 10;

/// Tasks that are followed, of which `due` are due in the first shard and the others in an hour.
async fn filled(database: &Database, rows: u32, due: u32) -> SqlStore {
    let store = database.migrated().await;
    let fill = format!(
        "INSERT INTO mcp_task (task_id, submit_key, user_id, thread_id, server, driver, task_name, configuration,
                               is_pinned, remote_id, status)
         SELECT md5(n::text)::uuid, md5('k' || n)::uuid, 'u' || n % 1000, 't' || n % 50, 'jobs', 'ordinary-tools', 'r', 1,
                false, 'r' || n, 2
         FROM generate_series(1, {rows}) n;
         INSERT INTO mcp_work (task_id, lane, due_at, configuration)
         SELECT md5(n::text)::uuid, CASE WHEN n <= {due} THEN 256 ELSE 256 + n % 8 END,
                clock_timestamp() + CASE WHEN n <= {due} THEN interval '-1 second' ELSE interval '1 hour' END, 1
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

/// The plan of a claim, executed without knowledge of the parameters, and the buffers it read.
async fn claimed(database: &Database, statement: &str, lanes: &str, rows: u64) -> (String, u64) {
    let floors = lanes.split(',').map(|_| "0").collect::<Vec<_>>().join(",");
    let parameters = format!("'{{{lanes}}}', '{{{floors}}}', 0, '{{}}', 60000, '{OURS}'");
    let types = "smallint[], bigint[], bigint, bigint[], bigint, uuid";
    let explain = format!(
        "SET plan_cache_mode = force_generic_plan; PREPARE claim({types}) AS {statement};
         EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) EXECUTE claim({parameters})"
    );
    let plan = database.ask(&explain).await;
    let found = format!("rows={rows} loops=1");
    assert!(plan[0].starts_with("Update on mcp_work") && plan[0].contains(&found), "{found} of\n{}", plan.join("\n"));
    let buffers = plan.iter().find_map(|line| line.trim().strip_prefix("Buffers: shared ")).unwrap();
    let count = |word: &str| -> Option<u64> {
        word.strip_prefix("hit=").or(word.strip_prefix("read=")).and_then(|count| count.parse().ok())
    };
    let read: u64 = buffers.split(' ').filter_map(count).sum();
    (plan.join("\n"), read)
}

async fn check(rows: u32) {
    let database = Database::postgres().await;
    let store = filled(&database, rows, 2_000).await;
    let claim = ClaimTasks { at_most: 64, ..wanted(OURS, Duty::Poll, LONG) };
    assert_eq!(store.claim_due(claim).await.unwrap().len(), 64);
    let statement = last_statement(&database).await;

    let (plan, buffers) = claimed(&database, &statement, "256", 64).await;
    assert!(!plan.contains("Seq Scan") && plan.contains("mcp_work_due"), "{plan}");
    // Among few rows, reading all that are due is as good.
    assert!(rows < 1_000_000 || !plan.contains("Sort"), "read in the order of the index\n{plan}");
    assert!(buffers <= 64 * BUFFERS_EACH, "{buffers} buffers for 64 rows\n{plan}");
    let (plan, buffers) = claimed(&database, &statement, "256,257,258,259,260,261,262,263", 64).await;
    assert!(!plan.contains("Seq Scan"), "{plan}");
    assert!(buffers <= 64 * BUFFERS_EACH, "{buffers} buffers for 64 rows of 8 shards\n{plan}");
    let (plan, buffers) = claimed(&database, &statement, "257", 0).await;
    assert!(!plan.contains("Seq Scan"), "{plan}");
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

#[tokio::test]
async fn every_other_look_at_many_tasks_goes_by_an_index() {
    let database = Database::postgres().await;
    let store = filled(&database, 20_000, 2_000).await;
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
