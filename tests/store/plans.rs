//! What PostgreSQL does for a statement of ours: with many rows it uses the index that the statement was written for.

use caribou_core::ids::Scope;
use caribou_ports::store::Promotions as _;

use crate::opened::Database;

/// The plan of the last statement that the store has sent, made without knowledge of the parameters, as it is after
/// some executions of a prepared statement.
async fn last_plan(database: &Database) -> String {
    let last =
        "SELECT query FROM pg_stat_activity WHERE application_name = 'caribou' ORDER BY query_start DESC LIMIT 1";
    let statement = database.ask(last).await.remove(0);
    let parameters = (1..).take_while(|number| statement.contains(&format!("${number}"))).map(|_| "NULL");
    let parameters = parameters.collect::<Vec<_>>().join(", ");
    let generic = "SET plan_cache_mode = force_generic_plan";
    let explain = format!("{generic}; PREPARE asked AS {statement}; EXPLAIN EXECUTE asked({parameters})");
    database.ask(&explain).await.join("\n")
}

#[tokio::test]
async fn the_promotions_of_a_thread_are_found_by_their_key() {
    let database = Database::postgres().await;
    let store = database.migrated().await;
    let rows = "INSERT INTO mcp_promotion SELECT 'ann', 't' || n, 'h', '[]' FROM generate_series(1, 20000) n";
    database.ask(&format!("{rows}; ANALYZE mcp_promotion")).await;
    store.promoted(Scope::new(Some("ann"), Some("t9"))).await.unwrap().unwrap();
    let plan = last_plan(&database).await;
    assert!(plan.contains("Index Scan using mcp_promotion_pkey") && !plan.contains("Seq Scan"), "{plan}");
}
