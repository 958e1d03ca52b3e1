//! The tasks of a task server, and what was asked of it. Holds no clock: instants come from outside.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::plan::{Ends, Plan};

/// What a server names its tasks with; the number follows.
const PREFIX: &str = "job-";

/// How often a server was asked what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Submits, repeats too.
    pub submits: u64,
    /// Submits of a task that was submitted before.
    pub duplicate_submits: u64,
    /// Questions for a status.
    pub statuses: u64,
    /// Requests to cancel.
    pub cancels: u64,
    /// Answers to questions.
    pub inputs: u64,
    /// Requests to cancel a task while another one for it was under way.
    pub overlapping_cancels: u64,
    /// Answers that were kept back beyond their time.
    pub late: u64,
    /// Questions that were never answered.
    pub hung: u64,
}

/// One task, as its server knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenTask {
    /// Its business name.
    pub n: u64,
    /// What the server calls it.
    pub remote_id: String,
    /// How often it was submitted.
    pub submits: u64,
    /// How it has ended; `None` = it goes on.
    pub ended: Option<Ends>,
    /// When its status was asked for.
    pub asked: Vec<Instant>,
}

#[derive(Debug)]
struct Task {
    plan: Plan,
    begun: Instant,
    submits: u64,
    is_cancelled: bool,
    answer: Option<Value>,
    cancels_under_way: u32,
    asked: Vec<Instant>,
}

/// Everything a server remembers.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    tasks: BTreeMap<u64, Task>,
    pub(super) counts: TaskCounts,
}

impl Task {
    fn ended(&self, now: Instant) -> Option<Ends> {
        let is_over = now.saturating_duration_since(self.begun) >= self.plan.done_after_submit();
        match (self.is_cancelled, is_over && (!self.plan.asks || self.answer.is_some())) {
            (true, _) => Some(Ends::Cancelled),
            (false, true) => Some(self.plan.ends),
            (false, false) => None,
        }
    }

    fn waits_for_answer(&self, now: Instant) -> bool {
        let half = self.plan.done_after_submit() / 2;
        self.plan.asks && self.answer.is_none() && now.saturating_duration_since(self.begun) >= half
    }

    fn seen(&self, now: Instant) -> SeenTask {
        SeenTask {
            n: self.plan.n,
            remote_id: remote_id(self.plan.n),
            submits: self.submits,
            ended: self.ended(now),
            asked: self.asked.clone(),
        }
    }
}

fn remote_id(n: u64) -> String {
    format!("{PREFIX}{n}")
}

fn number(remote_id: &str) -> Option<u64> {
    remote_id.strip_prefix(PREFIX)?.parse().ok()
}

impl Ledger {
    /// Begins a task; one that was begun before goes on as it is.
    pub(super) fn submit(&mut self, plan: Plan, now: Instant) -> Value {
        self.counts.submits += 1;
        let n = plan.n;
        let task = self.tasks.entry(n).or_insert_with(|| Task {
            plan,
            begun: now,
            submits: 0,
            is_cancelled: false,
            answer: None,
            cancels_under_way: 0,
            asked: Vec::new(),
        });
        task.submits += 1;
        self.counts.duplicate_submits += u64::from(task.submits > 1);
        json!({ "task_id": remote_id(n), "status": "running" })
    }

    /// How a task is.
    pub(super) fn status(&self, remote_id: &str, now: Instant) -> Value {
        let Some(task) = number(remote_id).and_then(|n| self.tasks.get(&n)) else { return unknown(remote_id) };
        match task.ended(now) {
            Some(Ends::Completed) => {
                json!({ "task_id": remote_id, "status": "completed", "result": { "n": task.plan.n } })
            }
            Some(Ends::Failed) => json!({ "task_id": remote_id, "status": "failed", "error": "it was planned so" }),
            Some(Ends::Cancelled) => json!({ "task_id": remote_id, "status": "cancelled" }),
            None if task.waits_for_answer(now) => json!({
                "task_id": remote_id, "status": "input_required",
                "input_required": { "prompt": "Shall it go on?", "schema": { "type": "object" } },
            }),
            None => json!({ "task_id": remote_id, "status": "running" }),
        }
    }

    /// A question for the status of a task has come; [`Ledger::status`] answers it.
    pub(super) fn asked(&mut self, remote_id: &str, now: Instant) {
        self.counts.statuses += 1;
        if let Some(task) = number(remote_id).and_then(|n| self.tasks.get_mut(&n)) {
            task.asked.push(now);
        }
    }

    /// A request to cancel has come; [`Ledger::cancelled`] answers it.
    pub(super) fn begin_cancel(&mut self, remote_id: &str) {
        self.counts.cancels += 1;
        if let Some(task) = number(remote_id).and_then(|n| self.tasks.get_mut(&n)) {
            self.counts.overlapping_cancels += u64::from(task.cancels_under_way > 0);
            task.cancels_under_way += 1;
        }
    }

    /// It is over, answered or not.
    pub(super) fn end_cancel(&mut self, remote_id: &str) {
        if let Some(task) = number(remote_id).and_then(|n| self.tasks.get_mut(&n)) {
            task.cancels_under_way -= 1;
        }
    }

    /// Cancels a task that goes on; how it has ended now.
    pub(super) fn cancelled(&mut self, remote_id: &str, now: Instant) -> Value {
        if let Some(task) = number(remote_id).and_then(|n| self.tasks.get_mut(&n)) {
            task.is_cancelled |= task.ended(now).is_none();
        }
        self.status(remote_id, now)
    }

    /// Takes the answer to a question; the first counts. `None` = there is no such task.
    pub(super) fn answer(&mut self, remote_id: &str, answer: Value) -> Option<()> {
        self.counts.inputs += 1;
        let task = self.tasks.get_mut(&number(remote_id)?)?;
        task.answer.get_or_insert(answer);
        Some(())
    }

    /// All tasks, by number.
    pub(super) fn tasks(&self, now: Instant) -> Vec<SeenTask> {
        self.tasks.values().map(|task| task.seen(now)).collect()
    }
}

fn unknown(remote_id: &str) -> Value {
    json!({ "task_id": remote_id, "status": "failed", "error_code": "task_not_found" })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn plan(n: u64, asks: bool) -> Plan {
        Plan { asks, ..Plan::done_after(n, Duration::from_secs(10)) }
    }

    #[test]
    fn time_ends_a_task_as_it_was_planned_and_a_cancel_ends_it_before() {
        let (mut ledger, begun) = (Ledger::default(), Instant::now());
        for n in [1, 2] {
            assert_eq!(ledger.submit(plan(n, false), begun)["task_id"], format!("job-{n}"));
        }
        ledger.submit(plan(1, false), begun);
        let late = begun + Duration::from_secs(10);
        assert_eq!(ledger.status("job-1", begun)["status"], "running");
        assert_eq!(ledger.status("job-1", late)["result"]["n"], 1);
        assert_eq!(ledger.status("job-3", begun)["error_code"], "task_not_found");
        ledger.begin_cancel("job-2");
        ledger.begin_cancel("job-2");
        assert_eq!(ledger.cancelled("job-2", begun)["status"], "cancelled");
        ledger.end_cancel("job-2");
        assert_eq!(ledger.cancelled("job-1", late)["status"], "completed");
        let counts = ledger.counts;
        assert_eq!((counts.submits, counts.duplicate_submits, counts.overlapping_cancels), (3, 1, 1));
        let ends: Vec<_> = ledger.tasks(late).into_iter().map(|task| (task.submits, task.ended)).collect();
        assert_eq!(ends, [(2, Some(Ends::Completed)), (1, Some(Ends::Cancelled))]);
    }

    #[test]
    fn a_question_keeps_a_task_until_it_is_answered() {
        let (mut ledger, begun) = (Ledger::default(), Instant::now());
        ledger.submit(plan(7, true), begun);
        let [half, end] = [5, 10].map(|seconds| begun + Duration::from_secs(seconds));
        assert_eq!(ledger.status("job-7", begun)["status"], "running");
        for now in [half, end] {
            assert_eq!(ledger.status("job-7", now)["status"], "input_required");
        }
        assert_eq!((ledger.answer("job-7", json!(1)), ledger.answer("job-8", json!(1))), (Some(()), None));
        assert_eq!(ledger.status("job-7", half)["status"], "running");
        assert_eq!(ledger.status("job-7", end)["status"], "completed");
    }
}
