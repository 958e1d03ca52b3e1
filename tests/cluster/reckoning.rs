//! What became of everything, by the words of the database, of the task server and of the receiver.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use caribou_tests::event_receiver::{ReceiverCounts, ToldEvent};
use caribou_tests::task_server::{Ends, SeenTask, TaskCounts};
use caribou_tests::{EventReceiver, TaskServer};

use crate::audit::{DELIVERY_TAKEOVER, TAKEOVER, faults, noted};
use crate::load::{Heard, Job};
use crate::records::Records;

/// The status of a task of which nobody knows whether its server has it.
const UNKNOWN: i64 = 13;

/// One task on record.
#[derive(Debug)]
struct Recorded {
    remote_id: Option<String>,
    status: i64,
}

/// The figures of a run. Lists that should be empty say what is in them.
#[derive(Debug)]
pub(crate) struct Reckoning {
    /// What callers heard: a task, an error, nothing.
    pub(crate) heard: [usize; 3],
    /// Tasks whose outcome is on record as unknown.
    pub(crate) unknown: usize,
    /// Tasks that somebody heard of and that have no end on record.
    pub(crate) lost: Vec<String>,
    /// Tasks whose end on record is another than at their server.
    pub(crate) wrong_ends: Vec<String>,
    /// Tasks of the server that are on record neither by name nor as unknown.
    pub(crate) untracked: usize,
    /// Tasks with two ends, or with a gap in their events.
    pub(crate) odd_histories: Vec<String>,
    /// Of the audit in the database.
    pub(crate) faults: Vec<String>,
    pub(crate) takeovers: u64,
    pub(crate) delivery_takeovers: u64,
    pub(crate) server: TaskCounts,
    pub(crate) receiver: ReceiverCounts,
    /// Events that are on record as told.
    pub(crate) told: usize,
    /// Deliveries that were given up.
    pub(crate) dead: usize,
    /// Ends that are neither told nor given up.
    pub(crate) untold: Vec<String>,
    /// Events whose effects are not one more than the runs of theirs that failed, as far as they are told; one at most
    /// when they are given up.
    pub(crate) wrong_effects: Vec<String>,
    /// The most requests for one event.
    pub(crate) most_requests: u64,
}

/// Whoever is asked.
pub(crate) struct Witnesses<'r> {
    pub(crate) records: &'r Records,
    pub(crate) server: &'r TaskServer,
    pub(crate) receiver: &'r EventReceiver,
    pub(crate) callers: &'r [(Job, Heard)],
}

impl Witnesses<'_> {
    /// Asks all of them.
    pub(crate) async fn reckon(&self) -> Reckoning {
        let recorded = self.recorded().await;
        let (told, untold, dead) = self.events().await;
        let seen = self.receiver.events();
        let tasks = self.server.tasks();
        let unknown = recorded.values().filter(|task| task.status == UNKNOWN).count();
        let named: BTreeSet<&str> = recorded.values().filter_map(|task| task.remote_id.as_deref()).collect();
        let nameless = tasks.iter().filter(|task| !named.contains(&*task.remote_id)).count();
        Reckoning {
            heard: self.heard(),
            unknown,
            lost: self.lost(&recorded),
            wrong_ends: wrong_ends(&recorded, &tasks),
            untracked: nameless.saturating_sub(unknown),
            odd_histories: self.odd_histories().await,
            faults: faults(self.records).await,
            takeovers: noted(self.records, TAKEOVER).await,
            delivery_takeovers: noted(self.records, DELIVERY_TAKEOVER).await,
            server: self.server.counts(),
            receiver: self.receiver.counts(),
            wrong_effects: wrong_effects(&told, &seen),
            told: told.len(),
            untold: untold.difference(&dead).map(|event| format!("{event:?}")).collect(),
            dead: dead.len(),
            most_requests: seen.values().map(|event| event.requests).max().unwrap_or(0),
        }
    }

    async fn recorded(&self) -> BTreeMap<String, Recorded> {
        let task = self.records.task_name();
        let sql =
            format!("SELECT {task} || ' ' || CAST(status AS text) || ' ' || COALESCE(remote_id, '-') FROM mcp_task");
        let rows = self.records.ask(&sql).await;
        let rows = rows.iter().map(|row| {
            let [name, status, remote_id] = row.split(' ').collect::<Vec<_>>()[..] else { panic!("a task: {row}") };
            let remote_id = (remote_id != "-").then(|| remote_id.to_owned());
            (name.to_owned(), Recorded { remote_id, status: status.parse().unwrap() })
        });
        rows.collect()
    }

    /// Events by task and number: those told; ends that are not; those given up.
    async fn events(&self) -> (BTreeSet<Event>, BTreeSet<Event>, BTreeSet<Event>) {
        let task = self.records.task_name();
        let listed = async |from: &str, seq: &str| -> BTreeSet<Event> {
            let rows = self.records.ask(&format!("SELECT {task} || ' ' || CAST({seq} AS text) FROM {from}")).await;
            rows.iter().map(|row| event(row)).collect()
        };
        let told = listed("mcp_event WHERE told_at IS NOT NULL", "seq").await;
        let untold = listed("mcp_event WHERE told_at IS NULL AND status >= 10", "seq").await;
        let dead = listed("mcp_delivery WHERE due_at IS NULL", "newest").await;
        (told, untold, dead)
    }

    fn heard(&self) -> [usize; 3] {
        let of = |is: fn(&Heard) -> bool| self.callers.iter().filter(|(_, heard)| is(heard)).count();
        [
            of(|heard| matches!(heard, Heard::Task(_))),
            of(|heard| matches!(heard, Heard::Refused(_))),
            of(|heard| matches!(heard, Heard::Nothing)),
        ]
    }

    fn lost(&self, recorded: &BTreeMap<String, Recorded>) -> Vec<String> {
        let heard = self.callers.iter().filter_map(|(job, heard)| match heard {
            Heard::Task(name) => Some((job, name.trim_start_matches("mcp-task-"))),
            Heard::Refused(_) | Heard::Nothing => None,
        });
        let lost = heard.filter(|(job, name)| {
            recorded
                .get(*name)
                .is_none_or(|task| task.status < 10 || task.remote_id.as_deref() != Some(&format!("job-{}", job.n)))
        });
        lost.map(|(job, name)| format!("{} {name}: {:?}", job.n, recorded.get(name))).collect()
    }

    async fn odd_histories(&self) -> Vec<String> {
        let task = self.records.task_name();
        let sql = format!(
            "SELECT {task} FROM mcp_event GROUP BY task_id
             HAVING max(seq) <> count(*) OR min(seq) <> 1 OR count(CASE WHEN status >= 10 THEN 1 END) <> 1"
        );
        self.records.ask(&sql).await
    }
}

/// The name of a task without its prefix, and the number of an event of it.
type Event = (String, i64);

fn event(row: &str) -> Event {
    let (task, seq) = row.split_once(' ').unwrap_or_else(|| panic!("an event: {row}"));
    (task.to_owned(), seq.parse().unwrap())
}

fn wrong_ends(recorded: &BTreeMap<String, Recorded>, tasks: &[SeenTask]) -> Vec<String> {
    let ends: BTreeMap<&str, Option<Ends>> = tasks.iter().map(|task| (&*task.remote_id, task.ended)).collect();
    let ended = recorded.iter().filter_map(|(name, task)| Some((name, task.status, task.remote_id.as_deref()?)));
    ended
        .filter(|(_, status, remote_id)| {
            let end = ends.get(remote_id).copied().flatten();
            end.map(|end| match end {
                Ends::Completed => 10,
                Ends::Failed => 11,
                Ends::Cancelled => 12,
            }) != Some(*status)
        })
        .map(|(name, status, remote_id)| format!("{name}: {status}, {remote_id}: {:?}", ends.get(remote_id)))
        .collect()
}

/// An event that is told had one effect besides those of its runs that failed; no event ever had more.
fn wrong_effects(told: &BTreeSet<Event>, seen: &BTreeMap<Event, ToldEvent>) -> Vec<String> {
    let bare = |(task, seq): &Event| (task.trim_start_matches("mcp-task-").to_owned(), *seq);
    let seen: BTreeMap<Event, &ToldEvent> = seen.iter().map(|(event, told)| (bare(event), told)).collect();
    let lasting = |event: &ToldEvent| event.effects - event.failing_runs;
    let too_many = seen.iter().filter(|(_, event)| lasting(event) > 1 || event.keys > event.failing_runs + 1);
    let too_many = too_many.map(|(event, told)| format!("{event:?}: {told:?}"));
    let unseen = told.iter().filter(|event| seen.get(event).is_none_or(|event| lasting(event) != 1));
    too_many.chain(unseen.map(|event| format!("{event:?}: told, but {:?}", seen.get(event)))).collect()
}

impl Reckoning {
    /// What holds after every run, whatever was done to it.
    pub(crate) fn assert_safe(&self) {
        assert_eq!(self.lost, [""; 0], "a task that a caller heard of is lost (T4)");
        assert_eq!(self.wrong_ends, [""; 0], "a task has ended otherwise than at its server");
        assert_eq!(self.untracked, 0, "a task of the server is not on record (T1)");
        assert_eq!(self.odd_histories, [""; 0], "two ends, none, or a gap between events (T2, T3)");
        assert_eq!(self.faults, [""; 0], "a write without a claim, or after an end (C1, T2)");
        assert_eq!(self.server.duplicate_submits, 0, "a task was submitted twice (T1)");
        assert_eq!(self.server.overlapping_cancels, 0, "two requests to cancel one task overlapped (I9)");
        assert_eq!(self.untold, [""; 0], "an end was neither told nor given up (N1)");
        assert_eq!(self.wrong_effects, [""; 0], "an event had more or less than one effect (N1)");
        assert_eq!(self.receiver.other_words, 0, "a key came with other words (N1)");
    }
}

impl fmt::Display for Reckoning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [tasks, refused, nothing] = self.heard;
        let server = &self.server;
        writeln!(
            f,
            "  callers heard {tasks} tasks, {refused} errors, {nothing} broken connections; {} unknown",
            self.unknown
        )?;
        writeln!(
            f,
            "  lost {}, wrong ends {}, untracked {}, odd histories {}, audit faults {}; takeovers {} (deliveries {})",
            self.lost.len(),
            self.wrong_ends.len(),
            self.untracked,
            self.odd_histories.len(),
            self.faults.len(),
            self.takeovers,
            self.delivery_takeovers,
        )?;
        writeln!(
            f,
            "  server: {} submits ({} duplicate), {} polls ({} late), {} cancels ({} overlapping)",
            server.submits,
            server.duplicate_submits,
            server.statuses,
            server.late,
            server.cancels,
            server.overlapping_cancels,
        )?;
        writeln!(
            f,
            "  receiver: told {}, dead {}, untold {}, wrong effects {}, at most {} requests an event; {:?}",
            self.told,
            self.dead,
            self.untold.len(),
            self.wrong_effects.len(),
            self.most_requests,
            self.receiver,
        )
    }
}
