//! Whether what the servers' diary, the callers' history and the database say fits together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use caribou_tests::counter_server::{Diary, Execution, Lives};

use super::history::{Call, History, Outcome, Window, percentile};
use super::witness;
use crate::records::Records;

/// Whoever is asked.
pub(crate) struct Witnesses<'w> {
    pub(crate) diary: &'w Diary,
    pub(crate) history: &'w History,
    pub(crate) records: &'w Records,
}

/// The figures of a run. Lists that should be empty say what is in them.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) calls: Vec<Call>,
    pub(crate) lives: Lives,
    /// Children of one session that were there at the same time (S3).
    pub(crate) overlaps: Vec<String>,
    /// Calls that reached a child more than once (S2).
    pub(crate) repeats: Vec<String>,
    /// Calls that were refused as not made, and were made (S2).
    pub(crate) made_though_refused: Vec<String>,
    /// Calls that were answered otherwise than they were counted.
    pub(crate) wrong_answers: Vec<String>,
    /// Calls that were answered by an older count or epoch than an earlier one of their thread (L2).
    pub(crate) backwards: Vec<String>,
    /// Epochs that had two children, or children that had two epochs.
    pub(crate) mixed_epochs: Vec<String>,
    /// New epochs of a thread that its callers were told of twice, or that were no new ones.
    pub(crate) mistold: Vec<String>,
    /// Of the triggers in the database.
    pub(crate) faults: Vec<String>,
    /// Sessions that belong to a life that has ended.
    pub(crate) orphaned: Vec<String>,
    pub(crate) taken_over: u64,
}

impl Witnesses<'_> {
    /// Asks all of them.
    pub(crate) async fn hear(&self) -> Verdict {
        let (calls, lives) = (self.history.calls(), self.diary.lives());
        let executed: BTreeMap<&str, &Execution> =
            lives.executions().iter().map(|execution| (execution.call.as_str(), execution)).collect();
        Verdict {
            overlaps: lives.overlaps(),
            repeats: lives.repeats().into_iter().map(str::to_owned).collect(),
            made_though_refused: made_though_refused(&calls, &executed),
            wrong_answers: wrong_answers(&calls, &executed),
            backwards: by_thread(&calls).values().flat_map(|calls| backwards(calls)).collect(),
            mixed_epochs: mixed_epochs(&calls),
            mistold: by_thread(&calls).values().flat_map(|calls| mistold(calls)).collect(),
            faults: witness::faults(self.records).await,
            orphaned: witness::orphaned(self.records).await,
            taken_over: witness::noted(self.records, witness::TAKEN_OVER).await,
            calls,
            lives,
        }
    }
}

fn by_thread(calls: &[Call]) -> BTreeMap<&str, Vec<&Call>> {
    let mut threads: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in calls {
        threads.entry(&call.thread).or_default().push(call);
    }
    threads
}

fn made_though_refused(calls: &[Call], executed: &BTreeMap<&str, &Execution>) -> Vec<String> {
    let refused = calls.iter().filter(|call| matches!(call.outcome, Outcome::Refused(_)));
    let made = refused.filter(|call| executed.contains_key(&*call.id));
    made.map(|call| format!("{} {:?}", call.id, call.outcome)).collect()
}

fn wrong_answers(calls: &[Call], executed: &BTreeMap<&str, &Execution>) -> Vec<String> {
    let wrong = calls.iter().filter(|call| {
        let Some(counted) = call.counted() else { return false };
        let done = executed.get(&*call.id).map(|execution| (&execution.life, execution.done.map(|(_, count)| count)));
        done != Some((&counted.life, Some(counted.count)))
    });
    wrong.map(|call| format!("{call:?}: {:?}", executed.get(&*call.id))).collect()
}

/// A call that began after another had ended comes later in the life of the session. `calls` as they were invoked.
fn backwards(calls: &[&Call]) -> Vec<String> {
    let mut ended: Vec<&Call> = calls.iter().copied().filter(|call| call.counted().is_some()).collect();
    ended.sort_by_key(|call| call.returned_ns);
    let mut ended = ended.into_iter().peekable();
    let (mut found, mut latest) = (Vec::new(), (0, 0));
    for call in calls {
        while let Some(before) = ended.next_if(|before| before.returned_ns < call.invoked_ns) {
            latest = before.counted().map_or(latest, |counted| latest.max((counted.epoch, counted.count)));
        }
        if let Some(counted) = call.counted().filter(|counted| (counted.epoch, counted.count) <= latest) {
            found.push(format!("{} {}: {counted:?} after {latest:?}", call.thread, call.id));
        }
    }
    found
}

fn mixed_epochs(calls: &[Call]) -> Vec<String> {
    let mut lives: BTreeMap<(&str, u64), BTreeSet<&str>> = BTreeMap::new();
    let mut epochs: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for (thread, counted) in calls.iter().filter_map(|call| Some((call.thread.as_str(), call.counted()?))) {
        lives.entry((thread, counted.epoch)).or_default().insert(&counted.life);
        epochs.entry(&counted.life).or_default().insert(counted.epoch);
    }
    let lives = lives.into_iter().filter(|(_, lives)| lives.len() > 1).map(|mixed| format!("{mixed:?}"));
    let epochs = epochs.into_iter().filter(|(_, epochs)| epochs.len() > 1).map(|mixed| format!("{mixed:?}"));
    lives.chain(epochs).collect()
}

/// How often each epoch of a thread was told as a restart.
fn told(calls: &[&Call]) -> BTreeMap<u64, usize> {
    let mut told: BTreeMap<u64, usize> = BTreeMap::new();
    for counted in calls.iter().filter_map(|call| call.counted()) {
        *told.entry(counted.epoch).or_default() += usize::from(counted.restarted);
    }
    told
}

/// No epoch is told twice, nor the first that anybody can have heard of.
fn mistold(calls: &[&Call]) -> Vec<String> {
    let told = told(calls);
    let is_whole = !calls.iter().any(|call| matches!(call.outcome, Outcome::Unknown(_)));
    let first = told.keys().next().copied().filter(|_| is_whole);
    let odd = told.into_iter().filter(|(epoch, times)| *times > 1 || (*times == 1 && Some(*epoch) == first));
    odd.map(|(epoch, times)| format!("{}: epoch {epoch} was told {times} times", calls[0].thread)).collect()
}

impl Verdict {
    /// Everything that must hold whatever happens.
    pub(crate) fn assert_safe(&self) {
        let nothing = Vec::<String>::new();
        for (what, found) in [
            ("children that met", &self.overlaps),
            ("calls made twice", &self.repeats),
            ("calls refused and made", &self.made_though_refused),
            ("wrong answers", &self.wrong_answers),
            ("answers that went back", &self.backwards),
            ("epochs and children that are mixed", &self.mixed_epochs),
            ("restarts told wrongly", &self.mistold),
            ("faults in the database", &self.faults),
        ] {
            let shown: Vec<_> = found.iter().take(10).collect();
            assert_eq!(found, &nothing, "{what}: {}, such as {shown:#?}", found.len());
        }
    }

    /// Those that were not counted, as their callers heard it.
    pub(crate) fn failed(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.counted().is_none())
    }

    /// Those of which nobody knows whether they were made.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| matches!(call.outcome, Outcome::Unknown(_)))
    }

    /// Those that failed although no fault was near.
    pub(crate) fn failed_elsewhere<'v>(&'v self, windows: &'v [Window]) -> impl Iterator<Item = &'v Call> {
        self.failed().filter(|call| !windows.iter().any(|window| window.touches(call)))
    }

    /// New epochs that callers were never told of although no fault was near to any answer of theirs: one that is lost,
    /// or that the database cannot be asked about, may have been the first.
    pub(crate) fn untold_elsewhere<'v>(&'v self, windows: &'v [Window]) -> impl Iterator<Item = (String, u64)> + 'v {
        by_thread(&self.calls).into_iter().flat_map(|(thread, calls)| {
            let told = told(&calls);
            let is_near = |epoch: u64| {
                let of_epoch = |call: &Call| call.counted().is_none_or(|counted| counted.epoch == epoch);
                calls.iter().any(|call| of_epoch(call) && windows.iter().any(|window| window.touches(call)))
            };
            let untold = told.iter().skip(1).filter(|(epoch, times)| **times == 0 && !is_near(**epoch));
            untold.map(|(epoch, _)| (thread.to_owned(), *epoch)).collect::<Vec<_>>()
        })
    }

    /// All that a fault was near to.
    pub(crate) fn near<'v>(&'v self, windows: &'v [Window]) -> impl Iterator<Item = &'v Call> {
        self.calls.iter().filter(|call| windows.iter().any(|window| window.touches(call)))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |is: fn(&Outcome) -> bool| self.calls.iter().filter(|call| is(&call.outcome)).count();
        let counted: Vec<u64> = self.calls.iter().filter(|call| call.counted().is_some()).map(Call::took_ms).collect();
        let by_session = self.lives.by_session();
        writeln!(
            f,
            "  {} calls: {} counted, {} refused, {} unknown; {} executed",
            self.calls.len(),
            counted.len(),
            of(|outcome| matches!(outcome, Outcome::Refused(_))),
            of(|outcome| matches!(outcome, Outcome::Unknown(_))),
            self.lives.executions().len()
        )?;
        writeln!(
            f,
            "  answered within {} ms (p50), {} ms (p99), {} ms at most",
            percentile(counted.iter().copied(), 0.5),
            percentile(counted.iter().copied(), 0.99),
            counted.iter().max().unwrap_or(&0)
        )?;
        writeln!(
            f,
            "  {} sessions, {} children, {} taken over; overlaps {}, made twice {}, faults {}, orphaned {}",
            by_session.len(),
            by_session.values().map(Vec::len).sum::<usize>(),
            self.taken_over,
            self.overlaps.len(),
            self.repeats.len(),
            self.faults.len(),
            self.orphaned.len()
        )?;
        let mut heard: BTreeMap<&str, usize> = BTreeMap::new();
        for call in self.failed() {
            let (Outcome::Refused(why) | Outcome::Unknown(why)) = &call.outcome else { continue };
            let end = why.find("\"request_id\"").unwrap_or(why.len()).min(160);
            *heard.entry(why.get(..end).unwrap_or_default()).or_default() += 1;
        }
        let mut heard: Vec<_> = heard.into_iter().collect();
        heard.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        for (why, times) in heard.into_iter().take(12) {
            writeln!(f, "    {times} times: {why}")?;
        }
        Ok(())
    }
}
