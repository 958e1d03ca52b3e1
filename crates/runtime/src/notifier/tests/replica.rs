//! Replicas of one cluster in one process, and tasks with news.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::holding::LeaseProfile;
use caribou_core::ids::{BootId, Scope};
use caribou_core::notification::{Delivery, Notified, Sink};
use caribou_core::task::event::Fingerprint;
use caribou_core::task::{Duty, Event, Shard, Snapshot, SnapshotFingerprint, Status, TaskId, TaskLimits};
use caribou_ports::store::{
    Change, ClaimTasks, Handle, Noted, Notifications as _, Recorded, Replica as OnRecord, Replicas as _, Settled,
    SubmitKey, TaskIntent, Tasks as _,
};
use caribou_store::Memory;
use ractor::{Actor, ActorRef};
use tokio::time::{Instant, sleep};

use super::receiver::Receiver;
use crate::membership::{Keeper, Membership, MembershipMessage};
use crate::notifier::message::NotifierMessage;
use crate::notifier::{Desk, DeskParts, Group, Notifier};

/// One life of one replica.
pub(super) struct Replica {
    pub(super) boot: BootId,
    pub(super) notifier: Notifier,
    keeper: Option<ActorRef<MembershipMessage>>,
    group: ActorRef<NotifierMessage>,
}

impl Replica {
    pub(super) async fn start(store: &Memory, receiver: &Receiver, name: &str, limits: TaskLimits) -> Self {
        let (mut replica, keeper) = Self::untrusted(store, receiver, name, limits).await;
        let (keeper, _) = Actor::spawn(None, keeper, ()).await.unwrap();
        replica.keeper = Some(keeper);
        replica
    }

    /// One whose lease nobody keeps, until the keeper is started.
    pub(super) async fn untrusted(
        store: &Memory,
        receiver: &Receiver,
        name: &str,
        limits: TaskLimits,
    ) -> (Self, Keeper) {
        let boot = BootId::new(name);
        let on_record = OnRecord::alone(boot.clone(), "test", "0");
        store.begin(on_record).await.unwrap();
        let membership = Membership::new(LeaseProfile::FAST);
        let keeper = Keeper {
            store: Arc::new(store.clone()),
            boot: boot.clone(),
            configurations: Vec::new(),
            membership: membership.clone(),
            peers: None,
        };
        let (store, sink) = (Arc::new(store.clone()), Arc::new(receiver.clone()));
        let parts = DeskParts { store, sink, membership, boot: boot.clone(), limits };
        let desk = Desk::new(parts, &opentelemetry::global::meter("test"));
        let notifier = desk.notifier().clone();
        let (group, _) = Actor::spawn(None, Group { desk }, ()).await.unwrap();
        notifier.role().fill(group.clone());
        (Self { boot, notifier, keeper: None, group }, keeper)
    }

    /// Ends it without a word, as a crash does.
    pub(super) fn kill(&self) {
        self.keeper.iter().for_each(|keeper| keeper.kill());
        self.group.kill();
    }

    /// Ends it in order.
    pub(super) async fn stop(&self, store: &Memory) {
        self.notifier.stop().await;
        self.keeper.iter().for_each(|keeper| keeper.kill());
        store.end(self.boot.clone()).await.unwrap();
    }
}

pub(super) fn id(number: u32) -> TaskId {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    TaskId(id)
}

/// The key of a launch.
pub(super) fn key(number: u32, seq: i64, attempt: u32) -> String {
    format!("mcp-task:{}:{seq}:{attempt}", id(number))
}

fn news(snapshot: Snapshot, says: u8) -> Change {
    let event = Event {
        status: snapshot.status,
        body: format!(r#"{{"says":{says}}}"#),
        attention: Some(Fingerprint([says; 32])),
    };
    Change { snapshot, event: Some(event), sinks: vec![Sink::Webhook] }
}

/// A task with its first event.
pub(super) async fn tells(store: &Memory, number: u32) {
    let intent = TaskIntent {
        task: id(number),
        submit_key: SubmitKey(id(number).0),
        scope: Scope::new(Some("ann"), Some("t")),
        server: "jobs".into(),
        driver: "fake".to_owned(),
        task_name: "report".to_owned(),
        snapshot: SnapshotFingerprint::of("as it was at the start"),
        is_pinned: false,
        run_id: Some("run-1".to_owned()),
        tool_call_id: None,
        owner: "the submitter".into(),
        lease: Duration::from_secs(60),
        at_most: 10_000,
    };
    let noted = store.note_intent(intent).await.unwrap();
    let Noted::Intended(claim) = noted else { panic!("{noted:?}") };
    let handle = Handle {
        remote_id: format!("remote-{number}"),
        driver_data: "{}".to_owned(),
        session_id: None,
        change: news(Snapshot::bare(Status::Submitted), 1),
        again: Duration::ZERO,
    };
    assert_eq!(store.record(claim, handle).await.unwrap(), Recorded::Recorded);
}

/// The only task of a store has another event.
pub(super) async fn tells_again(store: &Memory, says: u8) {
    let wanted = ClaimTasks {
        owner: "the poller".into(),
        duty: Duty::Poll,
        shards: Shard::all().collect(),
        at_most: 1,
        lease: Duration::from_secs(60),
        overdue: Duration::ZERO,
        not_of: Vec::new(),
    };
    let claimed = store.claim_due(wanted).await.unwrap().remove(0);
    let change = news(Snapshot::bare(Status::InputRequired), says);
    assert_eq!(store.apply(claimed.claim, change, Duration::ZERO).await.unwrap(), Settled::Settled);
}

/// What is still to be told of a task.
pub(super) async fn delivery(store: &Memory, number: u32) -> Option<Delivery> {
    store.deliveries(id(number)).await.unwrap().pop().map(|(_, delivery)| delivery)
}

pub(super) async fn notified(store: &Memory, number: u32) -> Notified {
    store.read_task(id(number), None).await.unwrap().unwrap().notified
}

/// Waits until something holds, and looks the more seldom the longer it may take.
pub(super) async fn until(what: &str, within: Duration, holds: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + within;
    let step = (within / 10_000).clamp(Duration::from_millis(10), Duration::from_secs(1));
    while !holds().await {
        assert!(Instant::now() < deadline, "not within {within:?}: {what}");
        sleep(step).await;
    }
}
