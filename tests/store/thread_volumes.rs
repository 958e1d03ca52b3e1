//! Where the files of a thread are means the same in every store.

use caribou_core::ids::{Scope, VolumeId};
use caribou_ports::store::{Replica, ThreadVolume};
use rstest::rstest;

use crate::opened::{Kind, Opened};

const OURS: &str = "019ad000-0000-7000-8000-000000000001";
const THEIRS: &str = "019ad000-0000-7000-8000-000000000002";
const ONE: &str = "019ad000-0000-7000-8000-0000000000a1";
const OTHER: &str = "019ad000-0000-7000-8000-0000000000a2";

fn scope(thread: &str) -> Scope {
    Scope::new(Some("ann"), Some(thread))
}

#[rstest]
#[tokio::test]
async fn the_files_of_a_thread_stay_where_they_were_first(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    let (one, other) = (VolumeId::from(ONE), VolumeId::from(OTHER));
    assert_eq!(store.thread_volume(scope("t")).await.unwrap(), None);
    assert_eq!(store.keep_thread_volume(scope("t"), one.clone()).await.unwrap(), one);
    assert_eq!(store.keep_thread_volume(scope("t"), other.clone()).await.unwrap(), one, "they are there already");
    assert_eq!(store.keep_thread_volume(scope("u"), other.clone()).await.unwrap(), other, "another thread");
    assert!(!store.forget_thread_volume(scope("t"), other.clone()).await.unwrap(), "they are not there");
    assert!(store.forget_thread_volume(scope("t"), one.clone()).await.unwrap());
    assert!(!store.forget_thread_volume(scope("t"), one).await.unwrap());
    assert_eq!(store.keep_thread_volume(scope("t"), other.clone()).await.unwrap(), other);
}

#[rstest]
#[tokio::test]
async fn a_volume_is_held_by_the_youngest_life_that_has_it_and_takes_part(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    let volume = VolumeId::from(ONE);
    store.keep_thread_volume(scope("t"), volume.clone()).await.unwrap();
    let found = |boot: Option<&str>| Some(ThreadVolume { volume: VolumeId::from(ONE), held_by: boot.map(Into::into) });
    assert_eq!(store.thread_volume(scope("t")).await.unwrap(), found(None));
    for boot in [OURS, THEIRS] {
        store.begin(Replica::alone(boot.into(), "h", "0")).await.unwrap();
        store.mount(boot.into(), volume.clone()).await.unwrap();
        assert_eq!(store.thread_volume(scope("t")).await.unwrap(), found(Some(boot)));
    }
    store.drain(THEIRS.into()).await.unwrap();
    assert_eq!(store.thread_volume(scope("t")).await.unwrap(), found(Some(OURS)), "that one hands over");
    store.end(OURS.into()).await.unwrap();
    assert_eq!(store.thread_volume(scope("t")).await.unwrap(), found(Some(THEIRS)));
    store.end(THEIRS.into()).await.unwrap();
    assert_eq!(store.thread_volume(scope("t")).await.unwrap(), found(None));
}
