//! Tasks in the making, for the tests of everything that happens to them.

use std::time::Duration;

use caribou_core::ids::{BootId, Scope};
use caribou_core::notification::Sink;
use caribou_core::task::event::{Facts, event};
use caribou_core::task::{
    Duty, Fingerprint, Lane, Report, RpcError, Shard, Snapshot, SnapshotFingerprint, Status, TaskId, TaskLimits,
};
use caribou_ports::store::{
    Change, ClaimTasks, ClaimedTask, Handle, Noted, Recorded, Settled, SubmitKey, TaskClaim, TaskIntent,
};
use caribou_tests::eventually;

use crate::opened::Store;

/// Two replicas.
pub(crate) const OURS: &str = "019ad000-0000-7000-8000-00000000000a";
pub(crate) const THEIRS: &str = "019ad000-0000-7000-8000-00000000000b";

/// A lease that no test outlives, and one that is over at once.
pub(crate) const LONG: Duration = Duration::from_secs(600);
pub(crate) const BRIEF: Duration = Duration::from_millis(1);

pub(crate) const WITHIN: Duration = Duration::from_secs(30);

pub(crate) fn id(number: u8) -> TaskId {
    TaskId([number; 16])
}

pub(crate) fn ann() -> Scope {
    Scope::new(Some("ann"), Some("t"))
}

pub(crate) fn configuration() -> SnapshotFingerprint {
    SnapshotFingerprint::of("as it was at the start")
}

pub(crate) fn intent(number: u8) -> TaskIntent {
    TaskIntent {
        task: id(number),
        submit_key: SubmitKey([number; 16]),
        scope: ann(),
        server: "jobs".into(),
        driver: "ordinary-tools".to_owned(),
        task_name: "report".to_owned(),
        snapshot: configuration(),
        is_pinned: false,
        run_id: Some("run-1".to_owned()),
        tool_call_id: None,
        owner: OURS.into(),
        lease: LONG,
        at_most: 1_000,
    }
}

/// A change from `before`, with its event, to the webhook.
pub(crate) fn change(task: TaskId, before: Status, told: Option<Fingerprint>, snapshot: Snapshot) -> Change {
    let facts = Facts { task_id: task, task_name: "report", snapshot: &snapshot, degraded_by: None };
    let event = event(before, told, &facts);
    Change { snapshot, event, sinks: vec![Sink::Webhook] }
}

/// A change of a claimed task.
pub(crate) fn moved(claimed: &ClaimedTask, snapshot: Snapshot) -> Change {
    change(claimed.claim.task, claimed.snapshot.status, claimed.told, snapshot)
}

pub(crate) fn working() -> Snapshot {
    Snapshot::bare(Status::Working)
}

pub(crate) fn asking(question: &str) -> Snapshot {
    Snapshot { input_required: Some(question.to_owned()), ..Snapshot::bare(Status::InputRequired) }
}

/// A finished task, with a result that no database may touch.
pub(crate) fn completed() -> Snapshot {
    let result = serde_json::value::RawValue::from_string(RESULT.to_owned()).unwrap();
    let report = Report { result: Some(result), ..Report::of(Status::Completed) };
    Snapshot::of(report, &TaskLimits::default()).unwrap()
}

/// A task whose call ended with an error of the protocol.
pub(crate) fn failed() -> Snapshot {
    let data = serde_json::value::RawValue::from_string(RESULT.to_owned()).unwrap();
    let error = RpcError { code: -5, message: "no".to_owned(), data: Some(data) };
    let report = Report { error: Some("why".to_owned()), rpc_error: Some(error), ..Report::of(Status::Failed) };
    Snapshot::of(report, &TaskLimits::default()).unwrap()
}

pub(crate) const RESULT: &str = r#"{"b":1.0,"a":9223372036854775809123,"nul":"\u0000","b":"ü"}"#;

pub(crate) fn handle(number: u8) -> Handle {
    Handle {
        remote_id: format!("remote-{number}"),
        driver_data: r#"{"b":1,"a":2}"#.to_owned(),
        session_id: Some("s".to_owned()),
        change: change(id(number), Status::Intended, None, Snapshot::bare(Status::Submitted)),
        again: Duration::ZERO,
    }
}

/// An intent that is stored.
pub(crate) async fn intended(store: &dyn Store, intent: TaskIntent) -> TaskClaim {
    let noted = store.note_intent(intent).await.unwrap();
    let Noted::Intended(claim) = noted else { panic!("{noted:?}") };
    claim
}

/// A task that is followed, and due now.
pub(crate) async fn followed(store: &dyn Store, number: u8) -> TaskId {
    let claim = intended(store, intent(number)).await;
    assert_eq!(store.record(claim, handle(number)).await.unwrap(), Recorded::Recorded);
    id(number)
}

/// What is claimed by whom; from every shard.
pub(crate) fn wanted(owner: &str, duty: Duty, lease: Duration) -> ClaimTasks {
    ClaimTasks {
        owner: BootId::from(owner),
        duty,
        shards: Shard::all().collect(),
        at_most: 64,
        lease,
        overdue: Duration::ZERO,
        not_of: Vec::new(),
    }
}

/// All that is due of one duty.
pub(crate) async fn claim(store: &dyn Store, owner: &str, duty: Duty, lease: Duration) -> Vec<ClaimedTask> {
    store.claim_due(wanted(owner, duty, lease)).await.unwrap()
}

/// The only task that becomes due of one duty.
pub(crate) async fn claim_one(store: &dyn Store, owner: &str, duty: Duty, lease: Duration) -> ClaimedTask {
    eventually(WITHIN, "a task is due", async || claim(store, owner, duty, lease).await.pop()).await
}

/// Ends a task well.
pub(crate) async fn complete(store: &dyn Store, number: u8) -> TaskId {
    let task = followed(store, number).await;
    let claimed = claim_one(store, OURS, Duty::Poll, LONG).await;
    assert_eq!(claimed.claim.task, task);
    let change = moved(&claimed, completed());
    assert_eq!(store.apply(claimed.claim, change, Duration::ZERO).await.unwrap(), Settled::Settled);
    task
}

pub(crate) fn all_lanes() -> Vec<Lane> {
    Duty::ALL.into_iter().flat_map(Duty::lanes).collect()
}
