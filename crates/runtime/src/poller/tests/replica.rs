//! Replicas of one cluster in one process, and the tasks they follow.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::holding::LeaseProfile;
use caribou_core::ids::{BootId, Scope};
use caribou_core::notification::Sink;
use caribou_core::task::event::{Facts, event};
use caribou_core::task::{Snapshot, SnapshotFingerprint, Status, TaskId, TaskLimits};
use caribou_ports::store::{
    Change, Handle, Noted, Recorded, Replica as OnRecord, Replicas as _, StoredTask, SubmitKey, TaskClaim, TaskIntent,
    Tasks as _,
};
use caribou_store::Memory;
use ractor::{Actor, ActorRef};
use tokio::time::{Instant, sleep};

use super::remote::Remote;
use crate::membership::{Keeper, Membership, MembershipMessage};
use crate::poller::{Desk, DeskParts, Group, Poller, PollerMessage};

/// One life of one replica.
pub(super) struct Replica {
    pub(super) boot: BootId,
    pub(super) membership: Membership,
    pub(super) poller: Poller,
    keeper: ActorRef<MembershipMessage>,
    group: ActorRef<PollerMessage>,
}

pub(super) fn configuration() -> SnapshotFingerprint {
    SnapshotFingerprint::of("as it was at the start")
}

impl Replica {
    pub(super) async fn start(store: &Memory, remote: &Remote, name: &str, limits: TaskLimits) -> Self {
        let boot = BootId::new(name);
        let on_record = OnRecord::alone(boot.clone(), "test", "0");
        store.begin(on_record).await.unwrap();
        let membership = Membership::new(LeaseProfile::FAST);
        let parts = DeskParts {
            store: Arc::new(store.clone()),
            road: Arc::new(remote.clone()),
            membership: membership.clone(),
            boot: boot.clone(),
            limits,
            sinks: vec![Sink::Webhook],
            configurations: vec![configuration()],
        };
        let desk = Desk::open(parts, &opentelemetry::global::meter("test"));
        let poller = desk.poller().clone();
        let keeper = Keeper {
            store: Arc::new(store.clone()),
            boot: boot.clone(),
            configurations: vec![configuration()],
            membership: membership.clone(),
            peers: None,
        };
        let (keeper, _) = Actor::spawn(None, keeper, ()).await.unwrap();
        let (group, _) = Actor::spawn(None, Group { desk }, ()).await.unwrap();
        poller.role().fill(group.clone());
        Self { boot, membership, poller, keeper, group }
    }

    /// Ends it without a word, as a crash does.
    pub(super) fn kill(&self) {
        self.keeper.kill();
        self.group.kill();
    }

    /// Its lease is renewed no more, as when it cannot reach the store; all else goes on.
    pub(super) fn cut_off(&self) {
        self.keeper.kill();
    }

    /// Ends it in order.
    pub(super) async fn stop(&self, store: &Memory) {
        self.poller.stop().await;
        self.keeper.kill();
        store.end(self.boot.clone()).await.unwrap();
    }
}

pub(super) fn id(number: u8) -> TaskId {
    TaskId([number; 16])
}

pub(super) fn remote_id(number: u8) -> String {
    format!("remote-{number}")
}

fn intent(number: u8, lease: Duration) -> TaskIntent {
    TaskIntent {
        task: id(number),
        submit_key: SubmitKey([number; 16]),
        scope: Scope::new(Some("ann"), Some("t")),
        server: "jobs".into(),
        driver: "fake".to_owned(),
        task_name: "report".to_owned(),
        snapshot: configuration(),
        is_pinned: false,
        run_id: None,
        tool_call_id: None,
        owner: "the submitter".into(),
        lease,
        at_most: 1_000,
    }
}

/// An intent whose remote is being asked.
pub(super) async fn intended(store: &Memory, number: u8, lease: Duration) -> TaskClaim {
    noted(store, intent(number, lease)).await
}

async fn noted(store: &Memory, intent: TaskIntent) -> TaskClaim {
    match store.note_intent(intent).await.unwrap() {
        Noted::Intended(claim) => claim,
        other => panic!("{other:?}"),
    }
}

/// A task that is followed from now on.
pub(super) async fn submitted(store: &Memory, number: u8) -> TaskId {
    let claim = intended(store, number, Duration::from_secs(60)).await;
    record(store, claim, number, None).await
}

/// A task that lives in one session only.
pub(super) async fn pinned(store: &Memory, number: u8, session: &str) -> TaskId {
    let claim = noted(store, TaskIntent { is_pinned: true, ..intent(number, Duration::from_secs(60)) }).await;
    record(store, claim, number, Some(session.to_owned())).await
}

async fn record(store: &Memory, claim: TaskClaim, number: u8, session_id: Option<String>) -> TaskId {
    let snapshot = Snapshot::bare(Status::Submitted);
    let facts = Facts { task_id: id(number), task_name: "report", snapshot: &snapshot, degraded_by: None };
    let event = event(Status::Intended, None, &facts);
    let handle = Handle {
        remote_id: remote_id(number),
        driver_data: "{}".to_owned(),
        session_id,
        change: Change { snapshot, event, sinks: Vec::new() },
        again: Duration::from_millis(10),
    };
    assert_eq!(store.record(claim, handle).await.unwrap(), Recorded::Recorded);
    id(number)
}

pub(super) async fn stored(store: &Memory, number: u8) -> StoredTask {
    store.read_task(id(number), None).await.unwrap().unwrap()
}

/// Waits until the task has ended; how.
pub(super) async fn ended(store: &Memory, number: u8, within: Duration) -> StoredTask {
    let what = format!("the end of task {number}");
    until(within, &what, async || Some(stored(store, number).await).filter(|task| task.ended_us.is_some())).await
}

/// Waits for a condition, in paused time.
pub(super) async fn until<T>(within: Duration, what: &str, condition: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {within:?}: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

pub(super) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
