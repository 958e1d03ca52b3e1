//! Sessions of clients before a store of one process: asked for once in a while, and never older than what was done
//! here.

use std::sync::Arc;
use std::time::Duration;

use caribou_ports::BoxFuture;
use caribou_ports::store::{ClientSession, ClientSessions, StoreError};
use caribou_store::{CachedClientSessions, Memory};

const LONG: Duration = Duration::from_secs(3_600);

fn session(id: &str) -> ClientSession {
    ClientSession {
        id: id.to_owned(),
        principal: "ann".into(),
        server: None,
        version: "2025-11-25".to_owned(),
        capabilities: "{}".to_owned(),
        log_level: None,
        subscriptions: Vec::new(),
    }
}

/// A store with one session, and the cache before it.
async fn cached() -> (Arc<Memory>, CachedClientSessions) {
    let store = Arc::new(Memory::default());
    let cache = CachedClientSessions::new(store.clone());
    assert!(cache.begin_client_session(session("a"), 9).await.unwrap());
    (store, cache)
}

async fn found(cache: &CachedClientSessions) -> Option<ClientSession> {
    cache.use_client_session("a".to_owned(), LONG).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_another_process_does_is_seen_within_a_second() {
    let (store, cache) = cached().await;
    assert_eq!(found(&cache).await, Some(session("a")));
    assert!(store.end_client_session("a".to_owned()).await.unwrap());
    tokio::time::advance(Duration::from_millis(999)).await;
    assert_eq!(found(&cache).await, Some(session("a")), "it is not asked for again");
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(found(&cache).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_idles_briefly_is_held_for_a_part_of_that() {
    let (_store, cache) = cached().await;
    let idle = Duration::from_millis(400);
    let find = async || cache.use_client_session("a".to_owned(), idle).await.unwrap().is_some();
    for _ in 0..20 {
        assert!(find().await, "it is in use");
        tokio::time::advance(Duration::from_millis(99)).await;
    }
    tokio::time::advance(Duration::from_millis(500)).await;
    assert!(!find().await);
}

#[tokio::test(start_paused = true)]
async fn what_is_done_here_is_seen_at_once() {
    let (_store, cache) = cached().await;
    assert_eq!(found(&cache).await, Some(session("a")));
    assert!(cache.set_client_log_level("a".to_owned(), "error".to_owned()).await.unwrap());
    let level = Some("error".to_owned());
    assert_eq!(found(&cache).await, Some(ClientSession { log_level: level.clone(), ..session("a") }));
    assert!(cache.subscribe_client("a".to_owned(), "a://1".to_owned(), true, 99).await.unwrap());
    let subscriptions = vec!["a://1".to_owned()];
    assert_eq!(found(&cache).await.unwrap().subscriptions, subscriptions);
    assert!(cache.agree_with_client("a".to_owned(), "2025-06-18".to_owned(), "{}".to_owned()).await.unwrap());
    assert_eq!(found(&cache).await.unwrap().version, "2025-06-18");
    assert!(cache.end_client_session("a".to_owned()).await.unwrap());
    assert_eq!(found(&cache).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_for_before_a_change_is_not_held_after_it() {
    let slow = Arc::new(Slow(Memory::default()));
    let cache = CachedClientSessions::new(slow);
    assert!(cache.begin_client_session(session("a"), 9).await.unwrap());
    let mut asking = cache.use_client_session("a".to_owned(), LONG);
    assert!(futures::poll!(&mut asking).is_pending(), "its answer is on the way");
    assert!(cache.end_client_session("a".to_owned()).await.unwrap());
    assert_eq!(asking.await.unwrap(), Some(session("a")));
    assert_eq!(found(&cache).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_nobody_waits_for_any_more_counts() {
    let cache = CachedClientSessions::new(Arc::new(Slow(Memory::default())));
    assert!(cache.begin_client_session(session("a"), 9).await.unwrap());
    assert_eq!(found(&cache).await, Some(session("a")));
    let mut ending = cache.end_client_session("a".to_owned());
    assert!(futures::poll!(&mut ending).is_pending(), "it is done, and its answer is on the way");
    drop(ending);
    assert_eq!(found(&cache).await, None);
}

/// A store whose answers take a moment on their way, of sessions that are used or ended.
struct Slow(Memory);

impl ClientSessions for Slow {
    fn begin_client_session(&self, session: ClientSession, most: u32) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.0.begin_client_session(session, most)
    }

    fn use_client_session(
        &self,
        id: String,
        idle: Duration,
    ) -> BoxFuture<'_, Result<Option<ClientSession>, StoreError>> {
        let answer = self.0.use_client_session(id, idle);
        Box::pin(async move {
            tokio::task::yield_now().await;
            answer.await
        })
    }

    fn agree_with_client(
        &self,
        id: String,
        version: String,
        capabilities: String,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.0.agree_with_client(id, version, capabilities)
    }

    fn set_client_log_level(&self, id: String, level: String) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.0.set_client_log_level(id, level)
    }

    fn subscribe_client(
        &self,
        id: String,
        uri: String,
        is_wanted: bool,
        most_chars: u32,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.0.subscribe_client(id, uri, is_wanted, most_chars)
    }

    fn end_client_session(&self, id: String) -> BoxFuture<'_, Result<bool, StoreError>> {
        let answer = self.0.end_client_session(id);
        Box::pin(async move {
            tokio::task::yield_now().await;
            answer.await
        })
    }

    fn forget_client_sessions(&self, idle: Duration, limit: u32) -> BoxFuture<'_, Result<u32, StoreError>> {
        self.0.forget_client_sessions(idle, limit)
    }
}
