//! The revisions of the configuration mean the same in every store (contract 1.11, 5.9; architecture.md §2).

use std::sync::Arc;

use caribou_core::reset::{MAX_REVISIONS, ResetScope};
use caribou_ports::config_source::ConfigSourceError;
use caribou_ports::store::{NextRevision, Revise, Revised, Revising, StoredRevision};
use futures::future::join_all;
use rstest::rstest;

use crate::opened::{Kind, Opened};

/// Bytes that no text type keeps as they are.
const TEXT: &[u8] = b"{\r\n\t\"a\": 1.0, \"b\": \"\\u0000\" } \xff";

fn writes(text: &[u8], scopes: &[ResetScope]) -> Revise {
    let next = NextRevision { text: text.to_vec(), scopes: scopes.to_vec() };
    Box::new(move |_| Revising::Write(next))
}

/// Writes what is there and one more byte.
fn appends(byte: u8) -> Revise {
    Box::new(move |last| {
        let mut text = last.map(|last| last.text.clone()).unwrap_or_default();
        text.push(byte);
        Revising::Write(NextRevision { text, scopes: Vec::new() })
    })
}

fn by(author: &str) -> Arc<str> {
    author.into()
}

#[rstest]
#[tokio::test]
async fn a_revision_is_kept_byte_for_byte_and_moves_its_generations_with_it(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    assert_eq!(store.last_revision().await.unwrap(), None);
    let server = ResetScope::Server("files".into());
    let Revised::Written(1, moved) = store.write_revision(by("import"), writes(TEXT, &[])).await.unwrap() else {
        panic!("not written")
    };
    let (first, generation) = store.last_revision().await.unwrap().unwrap();
    assert_eq!(
        (first, moved),
        (StoredRevision { number: 1, text: TEXT.to_vec() }, vec![(ResetScope::Document, generation)])
    );

    let written = store.write_revision(by("ops"), writes(b"{}", std::slice::from_ref(&server))).await.unwrap();
    let Revised::Written(2, moved) = written else { panic!("{written:?}") };
    assert_eq!(moved.iter().map(|(scope, _)| scope).collect::<Vec<_>>(), [&ResetScope::Document, &server]);
    let mut all = store.generations().await.unwrap();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    assert_eq!(all, moved, "both moved, and nothing else");
    assert!(moved[0].1.includes(generation) && moved[0].1 != generation);

    let heads = store.list_revisions(None, 10).await.unwrap();
    let told: Vec<_> = heads.iter().map(|head| (head.number, &*head.author, head.bytes)).collect();
    assert_eq!(told, [(2, "ops", 2), (1, "import", i64::try_from(TEXT.len()).unwrap())]);
    assert!(heads.iter().all(|head| head.at_ms > 1_600_000_000_000), "{heads:?}");
    assert_eq!(store.list_revisions(Some(2), 10).await.unwrap(), [heads[1].clone()]);
    assert_eq!(store.find_revision(1).await.unwrap().map(|found| found.text), Some(TEXT.to_vec()));
    assert_eq!(store.find_revision(3).await.unwrap(), None);
}

#[rstest]
#[tokio::test]
async fn what_is_refused_or_no_change_moves_nothing(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Opened::new(kind).await;
    store.write_revision(by("import"), writes(b"{}", &[])).await.unwrap();
    let before = (store.generations().await.unwrap(), store.last_revision().await.unwrap());
    let kept = store.write_revision(by("ops"), Box::new(|_| Revising::Keep)).await.unwrap();
    assert!(matches!(kept, Revised::Kept), "{kept:?}");
    let refusal = ConfigSourceError::ReadOnly { file: "f".to_owned(), reason: "r".to_owned() };
    let refused = store.write_revision(by("ops"), Box::new(|_| Revising::Refuse(refusal))).await.unwrap();
    assert!(matches!(refused, Revised::Refused(ConfigSourceError::ReadOnly { .. })), "{refused:?}");
    assert_eq!((store.generations().await.unwrap(), store.last_revision().await.unwrap()), before);
    let Revised::Written(number, moved) = store.write_revision(by("ops"), writes(b"[]", &[])).await.unwrap() else {
        panic!("not written")
    };
    assert_eq!((number, moved[0].1.counter), (2, before.0[0].1.counter + 1), "no number is left out");
}

#[rstest]
#[tokio::test]
async fn of_many_writers_each_reads_what_the_one_before_wrote(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    let written = join_all((0..24).map(|n| store.write_revision(by("ops"), appends(n)))).await;
    let mut numbers: Vec<i64> = Vec::new();
    for revised in written {
        let Revised::Written(number, _) = revised.unwrap() else { panic!("not written") };
        numbers.push(number);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=24).collect::<Vec<_>>());
    let (last, generation) = store.last_revision().await.unwrap().unwrap();
    let mut text = last.text;
    text.sort_unstable();
    assert_eq!((text, generation.counter), ((0..24).collect::<Vec<_>>(), 24), "nothing is lost");
}

#[rstest]
#[tokio::test]
async fn the_oldest_go_when_there_are_too_many(#[values(Kind::Memory, Kind::Sqlite)] kind: Kind) {
    // Invariant B1.
    let store = Opened::new(kind).await;
    let most = i64::from(MAX_REVISIONS);
    for number in 1..=most + 2 {
        store.write_revision(by("ops"), writes(number.to_string().as_bytes(), &[])).await.unwrap();
    }
    let heads = store.list_revisions(None, u32::MAX).await.unwrap();
    assert_eq!((heads.len(), heads[0].number), (MAX_REVISIONS as usize, most + 2));
    assert_eq!(store.find_revision(2).await.unwrap(), None);
}
