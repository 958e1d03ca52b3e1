//! What a receiver was told, by key, and what it answers.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::seeded::Seeded;

/// How a receiver meets an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// 200: it took it.
    Takes,
    /// 202 and a run, which succeeds.
    Launches,
    /// 202 and a run, which fails.
    LaunchesInVain,
    /// It takes it, or launches a run that succeeds, and closes the connection without an answer.
    TakesAndDrops,
    /// 500, and nothing was done.
    Breaks,
    /// 409: the thread is busy.
    IsBusy,
    /// 404: there is no such thread.
    KnowsNoThread,
}

/// How often a receiver answers how.
#[derive(Clone, Debug)]
pub struct Moods {
    /// Weights; what is not listed does not happen.
    pub weights: Vec<(u64, Answers)>,
    /// Draws the order.
    pub seed: u64,
}

impl Default for Moods {
    fn default() -> Self {
        Self { weights: vec![(1, Answers::Takes)], seed: 0 }
    }
}

impl Moods {
    fn draw(&self, chance: &mut Seeded) -> Answers {
        let mut drawn = chance.between(0, self.weights.iter().map(|(weight, _)| weight).sum());
        for (weight, answers) in &self.weights {
            match drawn.checked_sub(*weight) {
                Some(left) => drawn = left,
                None => return *answers,
            }
        }
        Answers::Takes
    }
}

/// What happened at a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounts {
    /// Requests with an event.
    pub requests: u64,
    /// Keys that had an effect. No key can have two here: whoever needs a second one has not kept its key.
    pub effects: u64,
    /// Requests with a key that had an effect before.
    pub repeats: u64,
    /// Requests with other words than the key came with before.
    pub other_words: u64,
    /// Connections closed without an answer.
    pub dropped: u64,
    /// 500.
    pub broke: u64,
    /// 409.
    pub busy: u64,
    /// 404.
    pub gone: u64,
    /// Runs launched.
    pub runs: u64,
    /// Those that fail.
    pub failing_runs: u64,
    /// Questions for a run.
    pub looks: u64,
}

/// One event of one task, as a receiver saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldEvent {
    /// The keys it came with.
    pub keys: u64,
    /// Requests.
    pub requests: u64,
    /// Keys that had an effect.
    pub effects: u64,
    /// Effects that were runs which fail.
    pub failing_runs: u64,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Status(u16),
    Run(String),
    Nothing,
}

#[derive(Debug)]
struct Row {
    event: (String, i64),
    body: Vec<u8>,
    requests: u64,
    effect: Option<Effect>,
}

#[derive(Clone, Debug)]
enum Effect {
    Taken,
    /// The number of its run.
    Run(usize),
}

#[derive(Debug)]
struct Run {
    succeeds: bool,
    /// Questions after which it has ended.
    ends_after: u64,
    looks: u64,
}

/// All keys.
#[derive(Debug)]
pub(super) struct Table {
    moods: Moods,
    chance: Seeded,
    rows: BTreeMap<String, Row>,
    runs: Vec<Run>,
    pub(super) counts: ReceiverCounts,
}

#[derive(Deserialize)]
struct Payload {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    mcp_task_notification: Launch,
}

#[derive(Deserialize)]
struct Launch {
    task_id: String,
    dispatch_version: i64,
}

impl Table {
    pub(super) fn new(moods: Moods) -> Self {
        let chance = Seeded::new(moods.seed);
        Self { moods, chance, rows: BTreeMap::new(), runs: Vec::new(), counts: ReceiverCounts::default() }
    }

    /// Takes a request, and says what is answered.
    pub(super) fn told(&mut self, key: &str, body: &[u8]) -> Answer {
        let Ok(Payload { data }) = serde_json::from_slice(body) else { return Answer::Status(400) };
        let Launch { task_id, dispatch_version } = data.mcp_task_notification;
        self.counts.requests += 1;
        let row = self.rows.entry(key.to_owned()).or_insert_with(|| Row {
            event: (task_id, dispatch_version),
            body: body.to_vec(),
            requests: 0,
            effect: None,
        });
        row.requests += 1;
        self.counts.other_words += u64::from(row.body != body);
        let answers = self.moods.draw(&mut self.chance);
        if row.effect.is_some() {
            self.counts.repeats += 1;
        } else if let Some(effect) = effect(answers, &mut self.chance, &mut self.runs) {
            self.counts.effects += 1;
            row.effect = Some(effect);
        }
        let effect = row.effect.clone();
        let counts = &mut self.counts;
        counts.runs = self.runs.len() as u64;
        counts.failing_runs = self.runs.iter().filter(|run| !run.succeeds).count() as u64;
        match (answers, effect) {
            (Answers::TakesAndDrops, _) => {
                counts.dropped += 1;
                Answer::Nothing
            }
            (Answers::Breaks, _) => {
                counts.broke += 1;
                Answer::Status(500)
            }
            // One that was seen is answered with what came of it.
            (_, Some(Effect::Taken)) => Answer::Status(200),
            (_, Some(Effect::Run(number))) => Answer::Run(run_id(number)),
            (Answers::KnowsNoThread, None) => {
                counts.gone += 1;
                Answer::Status(404)
            }
            (_, None) => {
                counts.busy += 1;
                Answer::Status(409)
            }
        }
    }

    /// How a run is; `None` = it was never launched.
    pub(super) fn looked_up(&mut self, id: &str) -> Option<&'static str> {
        self.counts.looks += 1;
        let number: usize = id.strip_prefix(RUN)?.parse().ok()?;
        let run = self.runs.get_mut(number)?;
        run.looks += 1;
        Some(match (run.looks > run.ends_after, run.succeeds) {
            (false, _) => "running",
            (true, true) => "success",
            (true, false) => "failed",
        })
    }

    /// Every event, by task and number.
    pub(super) fn events(&self) -> BTreeMap<(String, i64), ToldEvent> {
        let mut events: BTreeMap<(String, i64), ToldEvent> = BTreeMap::new();
        for row in self.rows.values() {
            let event = events.entry(row.event.clone()).or_default();
            event.keys += 1;
            event.requests += row.requests;
            event.effects += u64::from(row.effect.is_some());
            if let Some(Effect::Run(number)) = row.effect {
                event.failing_runs += u64::from(!self.runs[number].succeeds);
            }
        }
        events
    }
}

const RUN: &str = "run-";

fn run_id(number: usize) -> String {
    format!("{RUN}{number}")
}

/// What an answer does before it is given.
fn effect(answers: Answers, chance: &mut Seeded, runs: &mut Vec<Run>) -> Option<Effect> {
    let mut launch = |succeeds, chance: &mut Seeded| {
        runs.push(Run { succeeds, ends_after: chance.between(0, 2), looks: 0 });
        Effect::Run(runs.len() - 1)
    };
    match answers {
        Answers::Takes => Some(Effect::Taken),
        Answers::Launches => Some(launch(true, chance)),
        Answers::LaunchesInVain => Some(launch(false, chance)),
        Answers::TakesAndDrops if chance.happens(0.5) => Some(Effect::Taken),
        Answers::TakesAndDrops => Some(launch(true, chance)),
        Answers::Breaks | Answers::IsBusy | Answers::KnowsNoThread => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(seq: i64) -> Vec<u8> {
        let launch = serde_json::json!({ "task_id": "t", "dispatch_version": seq, "dispatch_attempt": 0 });
        serde_json::json!({ "data": { "mcp_task_notification": launch } }).to_string().into_bytes()
    }

    fn table(answers: Answers) -> Table {
        Table::new(Moods { weights: vec![(1, answers)], seed: 4 })
    }

    #[test]
    fn a_key_has_one_effect_however_often_it_comes() {
        let mut table = table(Answers::LaunchesInVain);
        let first = table.told("a", &body(1));
        assert_eq!((&first, table.told("a", &body(1))), (&Answer::Run("run-0".to_owned()), first.clone()));
        table.told("b", &body(1));
        table.told("b", &body(2));
        let counts = table.counts;
        assert_eq!((counts.effects, counts.repeats, counts.other_words, counts.failing_runs), (2, 2, 1, 2));
        let events = table.events();
        assert_eq!(events[&("t".to_owned(), 1)], ToldEvent { keys: 2, requests: 4, effects: 2, failing_runs: 2 });
        let looks: Vec<_> = (0..3).filter_map(|_| table.looked_up("run-0")).collect();
        assert_eq!((looks[2], table.looked_up("run-9")), ("failed", None));
    }

    #[test]
    fn what_is_refused_has_no_effect_and_what_is_dropped_has() {
        for (answers, answer, effects) in [
            (Answers::Takes, Answer::Status(200), 1),
            (Answers::TakesAndDrops, Answer::Nothing, 1),
            (Answers::Breaks, Answer::Status(500), 0),
            (Answers::IsBusy, Answer::Status(409), 0),
            (Answers::KnowsNoThread, Answer::Status(404), 0),
        ] {
            let mut table = table(answers);
            assert_eq!((table.told("a", &body(1)), table.counts.effects), (answer, effects), "{answers:?}");
        }
    }

    #[test]
    fn moods_come_as_often_as_they_weigh() {
        let moods = Moods { weights: vec![(3, Answers::Takes), (1, Answers::Breaks)], seed: 1 };
        let mut chance = Seeded::new(1);
        let broke = (0..10_000).filter(|_| moods.draw(&mut chance) == Answers::Breaks).count();
        assert!((2_300..2_700).contains(&broke), "{broke}");
    }
}
