//! What PostgreSQL does for a statement of ours: with many rows it uses the index that the statement was written for.

use std::time::Duration;

use caribou_core::ids::Scope;
use caribou_ports::store::{Audit as _, AuditFilter, Party, Promotions as _};

use crate::opened::Database;

/// The plan of the last statement that the store has sent, made without knowledge of the parameters, as it is after
/// some executions of a prepared statement.
pub(crate) async fn last_plan(database: &Database) -> String {
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

/// Every way to read the audit log goes by an index that ends at its page, and so does what is forgotten.
#[tokio::test]
async fn a_page_of_the_audit_log_and_what_is_old_in_it_are_found_by_their_index() {
    let database = Database::postgres().await;
    let store = database.migrated().await;
    let rows = "INSERT INTO mcp_audit (at_ms, principal, user_id, thread_id, action, server, tool, outcome, \
                duration_ms, request_id, door) SELECT n, 'k' || n % 50, 'u' || n % 50, 't', 'call_tool', 's', 's_x', \
                'ok', 1, 'r' || n, 'rest' FROM generate_series(1, 20000) n";
    database.ask(&format!("{rows}; ANALYZE mcp_audit")).await;
    let (principal, user) = (Some("k7".to_owned()), Some("u7".to_owned()));
    let party = Some(Party { principal: "k7".to_owned(), user: "u7".to_owned() });
    let all = AuditFilter::default;
    for (filter, indexes) in [
        (all(), &["mcp_audit_pkey"][..]),
        (AuditFilter { user, ..all() }, &["mcp_audit_user"]),
        (AuditFilter { principal, ..all() }, &["mcp_audit_principal"]),
        (AuditFilter { party, ..all() }, &["mcp_audit_user", "mcp_audit_principal", "mcp_audit_pkey"]),
    ] {
        assert_eq!(store.read(filter.clone(), 20).await.unwrap().len(), 20, "{filter:?}");
        let plan = last_plan(&database).await;
        assert!(indexes.iter().all(|index| plan.contains(index)) && !plan.contains("Seq Scan"), "{filter:?}\n{plan}");
    }
    assert_eq!(store.forget(Duration::from_secs(3_600), 10).await.unwrap(), 0);
    let plan = last_plan(&database).await;
    assert!(plan.contains("mcp_audit_at") && !plan.contains("Seq Scan"), "{plan}");
}
