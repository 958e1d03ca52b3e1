//! The audit log means the same in every store.

use std::time::Duration;

use caribou_ports::store::{AuditFilter, AuditRow, Party};
use caribou_tests::eventually;
use rstest::rstest;

use crate::opened::{Kind, Opened, Store};

/// A row of `principal` for `user`; all else depends on `number`.
fn row(number: i64, principal: &str, user: &str) -> AuditRow {
    AuditRow {
        at_ms: 1_800_000_000_000 + number,
        principal: principal.to_owned(),
        user: user.to_owned(),
        thread: format!("t{number}"),
        action: "call_tool".to_owned(),
        server: if number % 2 == 0 { "even" } else { "odd" }.to_owned(),
        tool: format!("tool_{}", number % 3),
        outcome: if number % 5 == 0 { "denied" } else { "ok" }.to_owned(),
        duration_ms: number,
        request_id: format!("r{number} \"ü\" '{{}}' \\ 🦌"),
        door: "rest".to_owned(),
    }
}

/// The numbers of the rows that match, the newest first.
async fn read(store: &dyn Store, filter: AuditFilter, limit: u32) -> Vec<i64> {
    store.read(filter, limit).await.unwrap().iter().map(|stored| stored.row.duration_ms).collect()
}

#[rstest]
#[tokio::test]
async fn rows_come_back_as_they_were_given_the_newest_first(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    let given: Vec<AuditRow> = (0..300).map(|number| row(number, "key-1", "ann")).collect();
    store.append(given[..299].to_vec()).await.unwrap();
    store.append(given[299..].to_vec()).await.unwrap();
    store.append(Vec::new()).await.unwrap();
    let found = store.read(AuditFilter::default(), 1_000).await.unwrap();
    assert!(found.is_sorted_by(|newer, older| newer.id > older.id), "{found:?}");
    let rows: Vec<_> = found.into_iter().rev().map(|stored| stored.row).collect();
    assert_eq!(rows, given);
}

#[rstest]
#[tokio::test]
async fn pages_follow_one_another_without_a_gap_while_rows_are_added(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    store.append((0..10).map(|number| row(number, "key-1", "ann")).collect()).await.unwrap();
    let (mut seen, mut before_id) = (Vec::new(), None);
    loop {
        let page = store.read(AuditFilter { before_id, ..AuditFilter::default() }, 4).await.unwrap();
        let Some(last) = page.last() else { break };
        before_id = Some(last.id);
        seen.extend(page.iter().map(|stored| stored.row.duration_ms));
        store.append(vec![row(100, "key-1", "ann")]).await.unwrap();
    }
    assert_eq!(seen, (0..10).rev().collect::<Vec<_>>());
}

#[rstest]
#[tokio::test]
async fn every_condition_narrows_what_is_read(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Opened::new(kind).await;
    let users = ["ann", "bob", "cleo"];
    let rows = (0..12).map(|number| row(number, ["key-1", "key-2"][number as usize / 6], users[number as usize % 3]));
    store.append(rows.collect()).await.unwrap();
    let all = AuditFilter::default;
    let some = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (AuditFilter { principal: some("key-2"), ..all() }, vec![11, 10, 9, 8, 7, 6]),
        (AuditFilter { user: some("bob"), ..all() }, vec![10, 7, 4, 1]),
        (AuditFilter { principal: some("key-1"), user: some("bob"), ..all() }, vec![4, 1]),
        (AuditFilter { server: some("even"), outcome: some("ok"), ..all() }, vec![8, 6, 4, 2]),
        (AuditFilter { tool: some("tool_2"), user: some("cleo"), server: some("odd"), ..all() }, vec![11, 5]),
        (AuditFilter { outcome: some("' OR 1 = 1 --"), ..all() }, vec![]),
        (AuditFilter { user: some("Bob"), ..all() }, vec![]),
    ] {
        assert_eq!(read(&*store, filter.clone(), 1_000).await, expected, "{filter:?}");
        assert_eq!(read(&*store, filter, 1).await, expected.into_iter().take(1).collect::<Vec<_>>());
    }
}

/// Invariant P1.
#[rstest]
#[tokio::test]
async fn a_party_reads_what_it_did_and_what_was_done_for_it_and_nothing_else(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    let rows = vec![
        row(0, "key-ann", "ann"),
        row(1, "key-agent", "ann"),
        row(2, "key-ann", "bob"),
        row(3, "key-bob", "bob"),
        row(4, "key-agent", "bob"),
        row(5, "key-ann", "ann"),
    ];
    store.append(rows).await.unwrap();
    let ann = Party { principal: "key-ann".to_owned(), user: "ann".to_owned() };
    let hers = |filter| AuditFilter { party: Some(ann.clone()), ..filter };
    assert_eq!(read(&*store, hers(AuditFilter::default()), 10).await, [5, 2, 1, 0]);
    assert_eq!(read(&*store, hers(AuditFilter::default()), 2).await, [5, 2]);
    let asks_for_bobs = AuditFilter { user: Some("bob".to_owned()), ..AuditFilter::default() };
    assert_eq!(read(&*store, hers(asks_for_bobs), 10).await, [2], "only what she did for him");
    let asks_for_agents = AuditFilter { principal: Some("key-agent".to_owned()), ..AuditFilter::default() };
    assert_eq!(read(&*store, hers(asks_for_agents), 10).await, [1], "only what was done for her");
    let from = store.read(hers(AuditFilter::default()), 10).await.unwrap()[1].id;
    let next_page = AuditFilter { before_id: Some(from), ..AuditFilter::default() };
    assert_eq!(read(&*store, hers(next_page), 10).await, [1, 0]);
}

#[rstest]
#[tokio::test]
async fn the_oldest_rows_are_forgotten_a_few_at_a_time(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    store.append((0..5).map(|number| row(number, "key-1", "ann")).collect()).await.unwrap();
    assert_eq!(store.forget(Duration::from_secs(3_600), 1_000).await.unwrap(), 0);
    let some = eventually(Duration::from_secs(30), "a millisecond passes", async || {
        Some(store.forget(Duration::from_millis(1), 3).await.unwrap()).filter(|forgotten| *forgotten > 0)
    });
    assert_eq!(some.await, 3);
    assert_eq!(read(&*store, AuditFilter::default(), 10).await, [4, 3]);
    assert_eq!(store.forget(Duration::ZERO, 1_000).await.unwrap(), 2);
    assert_eq!(store.forget(Duration::ZERO, 1_000).await.unwrap(), 0);
}

#[tokio::test]
async fn memory_keeps_the_newest_ten_thousand_rows() {
    // Invariant B1.
    let store = Opened::new(Kind::Memory).await;
    store.append((0..10_010).map(|number| row(number, "key-1", "ann")).collect()).await.unwrap();
    let kept = read(&*store, AuditFilter::default(), 20_000).await;
    assert_eq!((kept.len(), kept[0], kept[9_999]), (10_000, 10_009, 10));
}
