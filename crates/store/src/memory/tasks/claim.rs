//! Claiming what is due (invariants C1, T4).

use caribou_core::holding::Token;
use caribou_core::ids::BootId;
use caribou_core::task::poison::{Claimed, claimed};
use caribou_core::task::{Duty, Pin, Shard, TaskId};
use caribou_ports::store::{ClaimTasks, ClaimedTask, MAX_CLAIMED, TaskClaim};
use tokio::time::Instant;

use super::book::{Book, Task};

impl Book {
    /// Claims what is due, while these replicas live.
    pub(super) fn claim(&mut self, wanted: &ClaimTasks, living: &[BootId]) -> Vec<ClaimedTask> {
        let now = Instant::now();
        let mut given_out = Vec::new();
        for lane in wanted.shards.iter().map(|shard| wanted.duty.lane(*shard)) {
            let is_due = |task: &Task| {
                let pinned_to = task.pinned_to();
                let is_pinned_here = pinned_to.as_ref() == Some(&wanted.owner);
                let is_elsewhere = !is_pinned_here && pinned_to.is_some_and(|boot| living.contains(&boot));
                let is_ours = !wanted.not_of.contains(&task.intent.snapshot) && !is_elsewhere;
                let overdue = if is_pinned_here { std::time::Duration::ZERO } else { wanted.overdue };
                let is_due = task.work.due.checked_add(overdue).is_some_and(|due| due <= now);
                task.ended.is_none() && task.work.lane == lane && is_due && is_ours
            };
            let mut due: Vec<(Instant, TaskId)> =
                self.tasks.values().filter(|task| is_due(task)).map(|task| (task.work.due, task.intent.task)).collect();
            due.sort_unstable();
            let room = usize::try_from(wanted.at_most.min(MAX_CLAIMED)).unwrap_or(0) - given_out.len();
            for (_, id) in due.into_iter().take(room) {
                given_out.extend(self.tasks.get_mut(&id).and_then(|task| task.claim(wanted, now, living)));
            }
        }
        given_out
    }
}

impl Task {
    /// The replica whose session it lives in.
    pub(super) fn pinned_to(&self) -> Option<BootId> {
        let session = self.handle.as_ref().and_then(|handle| handle.session_id.as_deref());
        session.and_then(Pin::parse).map(|pin| pin.boot)
    }

    /// Claims it; `None` = it goes to quarantine instead.
    fn claim(&mut self, wanted: &ClaimTasks, now: Instant, living: &[BootId]) -> Option<ClaimedTask> {
        let work = &mut self.work;
        let duty = work.lane.duty();
        work.abandons += u32::from(work.owner.is_some());
        work.attempts += u32::from(duty != Duty::Poll);
        work.seq += 1;
        let verdict = claimed(duty, work.abandons);
        if verdict == Claimed::ToQuarantine {
            work.lane = Duty::Quarantine.lane(Shard::of(self.intent.task));
            (work.due, work.owner) = (now, None);
            return None;
        }
        (work.due, work.owner) = (now + wanted.lease, Some(wanted.owner.clone()));
        let token = Token { seq: work.seq, owner: wanted.owner.clone() };
        let handle = self.handle.as_ref();
        Some(ClaimedTask {
            claim: TaskClaim { task: self.intent.task, token },
            duty: self.duty(),
            is_poisoned: verdict == Claimed::Poisoned,
            poll_errors: self.work.poll_errors,
            attempts: self.work.attempts,
            scope: self.intent.scope.clone(),
            server: self.intent.server.clone(),
            driver: self.intent.driver.clone(),
            task_name: self.intent.task_name.clone(),
            remote_id: handle.map(|handle| handle.remote_id.clone()),
            driver_data: handle.map_or_else(|| "{}".to_owned(), |handle| handle.driver_data.clone()),
            session_id: handle.and_then(|handle| handle.session_id.clone()),
            is_pinned: self.intent.is_pinned,
            is_lost: self.pinned_to().is_some_and(|boot| !living.contains(&boot)),
            configuration: self.intent.snapshot,
            run_id: self.intent.run_id.clone(),
            snapshot: self.snapshot.clone(),
            told: self.told,
        })
    }
}
