//! Chains of rotating refresh tokens mean the same in every store (contract 7.5; invariants O1, O2, C1).

use std::time::Duration;

use caribou_core::ids::{BootId, ServerName};
use caribou_core::oauth::Fingerprint;
use caribou_core::oauth::chain_state::{AccessKind, ChainState};
use caribou_ports::store::{
    BeginRefresh, ChainLease, FailedRefresh, OAuthChains as _, Replica, SealedTokens, StartChain, StoredChain,
    Successor, Verdict,
};
use caribou_tests::eventually;
use futures::future::join_all;
use rstest::rstest;

use crate::opened::{Database, Kind, Opened, Store};

const SOON: Duration = Duration::from_secs(20);
const LEASE: Duration = Duration::from_secs(60);
const LIFE: Duration = Duration::from_secs(3_600);

fn a() -> ServerName {
    ServerName::new("a")
}

fn us() -> BootId {
    BootId::new("018f0000-0000-7000-8000-000000000001")
}

fn them() -> BootId {
    BootId::new("018f0000-0000-7000-8000-000000000002")
}

async fn chain(store: &dyn Store) -> StoredChain {
    store.load_chain(a()).await.unwrap().unwrap()
}

async fn started(store: &dyn Store) -> StoredChain {
    let start = StartChain { connection: a(), seed: Fingerprint([1; 32]), over: None };
    assert!(store.start_chain(start).await.unwrap());
    chain(store).await
}

async fn begin(store: &dyn Store, seen: &StoredChain, owner: BootId, lease: Duration) -> bool {
    store.begin_refresh(BeginRefresh { seen: seen.standing(), owner, lease }).await.unwrap()
}

fn lease_of(chain: &StoredChain, owner: BootId) -> ChainLease {
    let StoredChain { grant, generation, lease_seq, .. } = chain;
    ChainLease { grant: grant.clone(), generation: *generation, seq: *lease_seq, owner }
}

fn tokens(refresh: u8) -> SealedTokens {
    SealedTokens { refresh: Some(vec![0, refresh, 255]), access: Some(vec![refresh, 0]) }
}

fn successor(of: &StoredChain, rotated: bool) -> Successor {
    Successor {
        grant: of.grant.clone(),
        generation: of.generation,
        tokens: tokens(7),
        access_kind: AccessKind([3; 32]),
        access_left: LIFE,
        until_ahead: LIFE / 2,
        rotated,
    }
}

fn failure(lease: ChainLease, state: ChainState) -> FailedRefresh {
    FailedRefresh { lease, state, error: "why".to_owned(), retry_in: LEASE }
}

#[rstest]
#[tokio::test]
async fn a_chain_is_started_once_and_anew_only_over_what_was_seen(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    assert!(store.load_chain(a()).await.unwrap().is_none());
    let all = (0..8).map(|_| store.start_chain(StartChain { connection: a(), seed: Fingerprint([1; 32]), over: None }));
    assert_eq!(join_all(all).await.into_iter().filter(|done| *done == Ok(true)).count(), 1);
    let first = chain(&*store).await;
    assert_eq!((first.generation, first.state, first.tokens.clone()), (0, ChainState::Idle, SealedTokens::default()));
    assert!(begin(&*store, &first, us(), Duration::ZERO).await);
    let begun = chain(&*store).await;
    assert!(store.finish_refresh(successor(&begun, true)).await.unwrap());

    let anew =
        |over: &StoredChain| StartChain { connection: a(), seed: Fingerprint([2; 32]), over: Some(over.standing()) };
    assert!(!store.start_chain(anew(&begun)).await.unwrap(), "it moved");
    let moved = chain(&*store).await;
    assert!(store.start_chain(anew(&moved)).await.unwrap());
    let again = chain(&*store).await;
    assert_eq!((again.generation, again.seed, again.grant), (2, Fingerprint([2; 32]), first.grant));
    assert_eq!((again.rotated, again.tokens), (false, SealedTokens::default()));
}

#[rstest]
#[tokio::test]
async fn of_many_that_saw_the_same_one_begins_and_the_intent_is_there_for_all(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Invariants O1 and O2; R1.
    let store = Opened::new(kind).await;
    let seen = started(&*store).await;
    let all = (0..16).map(|at| begin(&*store, &seen, if at % 2 == 0 { us() } else { them() }, LEASE));
    assert_eq!(join_all(all).await.into_iter().filter(|begun| *begun).count(), 1);
    let now = chain(&*store).await;
    assert_eq!((now.state, now.presented, now.lease_seq), (ChainState::InFlight, 1, seen.lease_seq + 1));
    assert!(now.lease_left > LEASE / 2 && now.lease_owner.is_some() && now.since_begun < SOON);
    // What is seen now is under a lease: nobody begins, starts anew or gives up.
    assert!(!begin(&*store, &now, them(), LEASE).await);
    let anew = StartChain { connection: a(), seed: Fingerprint([2; 32]), over: Some(now.standing()) };
    assert!(!store.start_chain(anew).await.unwrap());
    let verdict =
        Verdict { seen: now.standing(), state: ChainState::Unknown, error: String::new(), retry_in: Duration::ZERO };
    assert!(!store.give_up_refresh(verdict).await.unwrap());
    assert_eq!(chain(&*store).await.state, ChainState::InFlight);
}

#[rstest]
#[tokio::test]
async fn a_successor_is_fenced_by_its_generation_alone(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Invariant O2 and the exception of C1; R2.
    let store = Opened::new(kind).await;
    let seen = started(&*store).await;
    assert!(begin(&*store, &seen, us(), Duration::ZERO).await);
    let ours = chain(&*store).await;
    // Its lease ends, and somebody else presents the token again.
    eventually(SOON, "the end of the lease", async || begin(&*store, &ours, them(), LEASE).await.then_some(())).await;
    let theirs = chain(&*store).await;
    assert_eq!(theirs.presented, 2);
    assert!(store.finish_refresh(successor(&ours, true)).await.unwrap(), "no lease is asked for");
    let now = chain(&*store).await;
    assert_eq!((now.generation, now.state, now.presented, now.rotated), (1, ChainState::Idle, 0, true));
    assert_eq!((now.tokens.clone(), now.access_kind), (tokens(7), Some(AccessKind([3; 32]))));
    assert!(now.access_left > LIFE - SOON && now.until_ahead <= LIFE / 2 && now.lease_left.is_zero());
    assert_eq!(now.lease_owner, None);
    // Whoever presented the same generation changes nothing of the next one.
    assert!(!store.finish_refresh(successor(&theirs, false)).await.unwrap());
    for state in [ChainState::Idle, ChainState::Unknown, ChainState::ReauthNeeded] {
        assert!(!store.settle_refresh(failure(lease_of(&theirs, them()), state)).await.unwrap(), "{state:?}");
    }
    assert_eq!(chain(&*store).await.tokens, tokens(7));
    // A provider that gives no successor later on has rotated all the same.
    assert!(begin(&*store, &now, us(), LEASE).await);
    assert!(store.finish_refresh(successor(&now, false)).await.unwrap());
    assert!(chain(&*store).await.rotated);
}

#[rstest]
#[tokio::test]
async fn a_failure_is_stored_by_the_newest_presentation_alone_and_keeps_the_tokens(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // R5.
    let store = Opened::new(kind).await;
    let seen = started(&*store).await;
    assert!(begin(&*store, &seen, us(), LEASE).await && store.finish_refresh(successor(&seen, true)).await.unwrap());
    let mut last = chain(&*store).await;
    for (state, presented) in [(ChainState::Idle, 0), (ChainState::Unknown, 1), (ChainState::ReauthNeeded, 1)] {
        assert!(begin(&*store, &last, us(), LEASE).await, "{state:?}");
        let begun = chain(&*store).await;
        let mine = lease_of(&begun, us());
        for other in [ChainLease { owner: them(), ..mine.clone() }, ChainLease { seq: mine.seq - 1, ..mine.clone() }] {
            assert!(!store.settle_refresh(failure(other.clone(), state)).await.unwrap());
            assert!(!store.renew_refresh(other, LEASE).await.unwrap());
        }
        assert!(store.renew_refresh(mine.clone(), LEASE).await.unwrap());
        assert!(store.settle_refresh(failure(mine.clone(), state)).await.unwrap());
        assert!(!store.settle_refresh(failure(mine.clone(), state)).await.unwrap(), "it is settled");
        assert!(!store.renew_refresh(mine, LEASE).await.unwrap());
        last = chain(&*store).await;
        assert_eq!((last.state, last.presented, last.generation), (state, presented, 1), "{state:?}");
        assert_eq!((last.tokens.clone(), last.last_error.as_deref()), (tokens(7), Some("why")));
        assert!(last.retry_in > LEASE / 2 && last.lease_left.is_zero());
        assert_eq!(last.lease_owner.is_some(), state == ChainState::Unknown, "who may have an answer yet");
    }
    assert!(!begin(&*store, &last, us(), LEASE).await, "a person must act");
}

#[rstest]
#[tokio::test]
async fn what_nobody_settled_is_called_unknown_after_its_lease_and_then_given_up(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    store.begin(Replica::alone(us(), "h", "1")).await.unwrap();
    let seen = started(&*store).await;
    let verdict = |seen: &StoredChain, state| Verdict {
        seen: seen.standing(),
        state,
        error: "why".to_owned(),
        retry_in: Duration::ZERO,
    };
    assert!(!store.give_up_refresh(verdict(&seen, ChainState::Unknown)).await.unwrap(), "nobody presented it");
    assert!(begin(&*store, &seen, us(), Duration::ZERO).await);
    let begun = chain(&*store).await;
    eventually(SOON, "the end of the lease", async || {
        store.give_up_refresh(verdict(&begun, ChainState::Unknown)).await.unwrap().then_some(())
    })
    .await;
    let unknown = chain(&*store).await;
    assert_eq!((unknown.state, unknown.presented, unknown.is_holder_dead), (ChainState::Unknown, 1, false));
    store.end(us()).await.unwrap();
    assert!(chain(&*store).await.is_holder_dead, "its life has ended");
    assert!(store.give_up_refresh(verdict(&unknown, ChainState::ReauthNeeded)).await.unwrap());
    assert!(!store.give_up_refresh(verdict(&unknown, ChainState::Unknown)).await.unwrap(), "for good");
    // A successor that comes after all is no less good.
    assert!(store.finish_refresh(successor(&unknown, true)).await.unwrap());
}

#[rstest]
#[tokio::test]
async fn what_is_left_of_a_forgotten_chain_meets_no_later_one(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    let first = started(&*store).await;
    assert!(begin(&*store, &first, us(), LEASE).await);
    assert!(store.forget_chain(first.grant.clone()).await.unwrap());
    assert!(!store.forget_chain(first.grant.clone()).await.unwrap());
    let second = started(&*store).await;
    assert_eq!(second.generation, first.generation);
    assert!(!store.finish_refresh(successor(&first, true)).await.unwrap());
    assert_eq!(store.list_chains().await.unwrap().len(), 1);
    assert_eq!(chain(&*store).await.grant, second.grant);
}

#[rstest]
#[tokio::test]
async fn a_reseal_replaces_only_what_was_read(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Opened::new(kind).await;
    let empty = started(&*store).await;
    assert!(store.reseal_chain(empty.clone(), SealedTokens::default()).await.unwrap());
    assert!(begin(&*store, &empty, us(), LEASE).await && store.finish_refresh(successor(&empty, true)).await.unwrap());
    assert!(!store.reseal_chain(empty, tokens(9)).await.unwrap(), "another token stands there");
    let before = chain(&*store).await;
    assert!(store.reseal_chain(before.clone(), tokens(9)).await.unwrap());
    assert!(!store.reseal_chain(before, tokens(8)).await.unwrap());
    assert_eq!(chain(&*store).await.tokens, tokens(9));
}

#[tokio::test]
async fn a_chain_is_found_by_its_connection() {
    let database = Database::postgres().await;
    let store = database.migrated().await;
    let rows = "INSERT INTO mcp_oauth_chain (grant_id, connection, seed_fp, changed_at)
                SELECT gen_random_uuid(), 'c' || n, decode(repeat('00', 32), 'hex'), now() FROM generate_series(1, 20000) n";
    database.ask(&format!("{rows}; ANALYZE mcp_oauth_chain")).await;
    assert!(store.load_chain(ServerName::new("c9")).await.unwrap().is_some());
    let plan = crate::plans::last_plan(&database).await;
    assert!(plan.contains("mcp_oauth_chain_connection_key") && !plan.contains("Seq Scan on mcp_oauth"), "{plan}");
}
