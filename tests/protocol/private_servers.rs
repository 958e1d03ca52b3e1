//! The private PostgreSQL and Redis start, answer, and leave nothing.

use caribou_tests::process::is_alive;
use caribou_tests::{Postgres, Redis};

#[tokio::test]
async fn a_private_postgres_answers_and_leaves_with_its_handle() {
    let postgres = Postgres::start().await;
    assert_eq!(postgres.ask("SELECT 1 UNION ALL SELECT 2").await.unwrap(), ["1", "2"]);
    let error = postgres.ask("SELECT nonsense").await.unwrap_err().to_string();
    assert!(error.contains("nonsense"), "{error}");
    let pid = postgres.pid();
    drop(postgres);
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_private_redis_answers_and_leaves_with_its_handle() {
    let redis = Redis::start().await;
    assert_eq!(redis.ask("SET colour red").await.unwrap(), "+OK");
    assert_eq!(redis.ask("PING").await.unwrap(), "+PONG");
    let pid = redis.pid();
    drop(redis);
    assert!(!is_alive(pid));
}
