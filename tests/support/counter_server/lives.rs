//! What a diary says: which lives each session had, whether two of them met, and what was executed in each.

use std::collections::BTreeMap;

use serde::Deserialize;

/// One line.
#[derive(Deserialize)]
struct Line {
    ns: u64,
    event: String,
    life: String,
    pid: u32,
    session: String,
    boot: String,
    #[serde(default)]
    met: bool,
    #[serde(default)]
    call: String,
    #[serde(default)]
    count: u64,
}

/// One process of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// Its own name; that of a daemon begins with the name of the life that started it.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// Whose session it is: `server/user:thread`.
    pub session: String,
    /// Which life of which replica started it.
    pub boot: String,
    /// When it began, by the boot clock.
    pub began_ns: u64,
    /// The last moment at which it is known to have lasted.
    pub last_ns: u64,
    /// Whether another life of its session held the session's lock when it began.
    pub met: bool,
    /// Whether it is a daemon that a counter has started.
    pub is_daemon: bool,
}

impl Life {
    /// Whether it serves the catalogue, of which every replica has its own.
    pub fn is_of_catalog(&self) -> bool {
        self.session.ends_with("/:")
    }
}

/// One call that reached a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The caller's name for it.
    pub call: String,
    /// The life that it reached.
    pub life: String,
    /// When it did.
    pub began_ns: u64,
    /// When it was counted, and as the how manieth; `None` = its life has ended before, or goes on.
    pub done: Option<(u64, u64)>,
}

/// Everything that a diary says.
#[derive(Debug, Default)]
pub struct Lives {
    lives: BTreeMap<String, Life>,
    executions: Vec<Execution>,
}

impl Lives {
    /// Reads `lines`; `stamp` answers with the last moment that a life noted besides.
    pub(super) fn read(lines: &str, stamp: impl Fn(&str) -> Option<u64>) -> Self {
        let mut read = Self::default();
        // The last line may still be on its way.
        for line in lines.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            read.add(line);
        }
        for life in read.lives.values_mut() {
            life.last_ns = life.last_ns.max(stamp(&life.name).unwrap_or_default());
        }
        read
    }

    fn add(&mut self, line: Line) {
        let Line { ns, event, life: name, pid, session, boot, met, call, count } = line;
        let is_daemon = event == "daemon";
        let new = || Life { name: name.clone(), pid, session, boot, began_ns: ns, last_ns: ns, met, is_daemon };
        let life = self.lives.entry(name.clone()).or_insert_with(new);
        life.last_ns = life.last_ns.max(ns);
        match event.as_str() {
            "call" => self.executions.push(Execution { call, life: name, began_ns: ns, done: None }),
            "done" => {
                let begun = self.executions.iter_mut().rev().find(|begun| begun.call == call && begun.life == name);
                if let Some(begun) = begun {
                    begun.done = Some((ns, count));
                }
            }
            _ => {}
        }
    }

    /// All lives but those of the catalogue, by name.
    pub fn all(&self) -> impl Iterator<Item = &Life> {
        self.lives.values().filter(|life| !life.is_of_catalog())
    }

    /// One life.
    pub fn get(&self, name: &str) -> Option<&Life> {
        self.lives.get(name)
    }

    /// All lives, the catalogue's too.
    pub fn everyone(&self) -> impl Iterator<Item = &Life> {
        self.lives.values()
    }

    /// The lives of each session without their daemons, oldest first.
    pub fn by_session(&self) -> BTreeMap<&str, Vec<&Life>> {
        let mut sessions: BTreeMap<&str, Vec<&Life>> = BTreeMap::new();
        for life in self.all().filter(|life| !life.is_daemon) {
            sessions.entry(&life.session).or_default().push(life);
        }
        for lives in sessions.values_mut() {
            lives.sort_by_key(|life| life.began_ns);
        }
        sessions
    }

    /// Every call that reached a counter, in the order in which they did.
    pub fn executions(&self) -> &[Execution] {
        &self.executions
    }

    /// In words, each pair of lives of one session that were there at the same time (invariant S3).
    pub fn overlaps(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (session, lives) in self.by_session() {
            found.extend(lives.iter().filter(|life| life.met).map(|life| {
                format!("{session}: {} (of {}) began while another held the session", life.name, life.boot)
            }));
            let mut until: Option<(u64, &Life)> = None;
            for life in lives {
                if let Some((until, before)) = until.filter(|(until, _)| *until > life.began_ns) {
                    let ms = (until - life.began_ns) / 1_000_000;
                    let (old, new) = (&before.boot, &life.boot);
                    found.push(format!("{session}: {} of {old} and {} of {new} for {ms} ms", before.name, life.name));
                }
                let ends = self.last_of(life);
                if until.is_none_or(|(until, _)| until < ends) {
                    until = Some((ends, life));
                }
            }
        }
        found
    }

    /// The last moment of a life and of all that it has started.
    fn last_of(&self, life: &Life) -> u64 {
        let daemon = self.lives.get(&format!("{}-daemon", life.name));
        daemon.map_or(life.last_ns, |daemon| daemon.last_ns.max(life.last_ns))
    }

    /// The names of calls that reached a counter more than once (invariant S2).
    pub fn repeats(&self) -> Vec<&str> {
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for execution in &self.executions {
            *times.entry(&execution.call).or_default() += 1;
        }
        times.into_iter().filter_map(|(call, times)| (times > 1).then_some(call)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ns: u64, event: &str, life: &str, session: &str, rest: &str) -> String {
        format!(r#"{{"ns":{ns},"event":"{event}","life":"{life}","pid":1,"session":"{session}","boot":"b"{rest}}}"#)
    }

    fn read(lines: &[String], stamp: impl Fn(&str) -> Option<u64>) -> Lives {
        Lives::read(&lines.join("\n"), stamp)
    }

    #[test]
    fn two_lives_of_one_session_that_met_are_found_by_stamp_by_daemon_and_by_lock() {
        let apart = [line(1, "start", "a", "s/u:t", ""), line(50, "start", "b", "s/u:t", "")];
        assert_eq!(read(&apart, |life| (life == "a").then_some(49)).overlaps(), Vec::<String>::new());
        assert_eq!(read(&apart, |life| (life == "a").then_some(51)).overlaps().len(), 1);
        let daemon = [apart[0].clone(), line(2, "daemon", "a-daemon", "s/u:t", ""), apart[1].clone()];
        assert_eq!(read(&daemon, |life| (life == "a-daemon").then_some(51)).overlaps().len(), 1);
        let locked = [apart[0].clone(), line(50, "start", "b", "s/u:t", r#","met":true"#)];
        assert_eq!(read(&locked, |_| None).overlaps().len(), 1);
    }

    #[test]
    fn other_sessions_and_those_of_the_catalogue_may_be_there_at_the_same_time() {
        let lines = ["s/u:t", "s/u:x", "s/:", "s/:"].map(|session| line(1, "start", session, session, ""));
        let lives = read(&lines, |_| Some(9));
        assert_eq!((lives.overlaps(), lives.all().count()), (Vec::new(), 2));
    }

    #[test]
    fn a_call_that_reached_two_lives_is_a_repeat_and_one_that_was_not_counted_is_not_done() {
        let lines = [
            line(1, "start", "a", "s/u:t", ""),
            line(2, "call", "a", "s/u:t", r#","call":"c1""#),
            line(3, "call", "a", "s/u:t", r#","call":"c2""#),
            line(4, "done", "a", "s/u:t", r#","call":"c2","count":1"#),
            line(9, "call", "b", "s/u:t", r#","call":"c1""#),
            "{\"ns\":9,\"eve".to_owned(),
        ];
        let lives = read(&lines, |_| None);
        assert_eq!(lives.repeats(), ["c1"]);
        let done: Vec<_> = lives.executions().iter().map(|execution| execution.done).collect();
        assert_eq!(done, [None, Some((4, 1)), None]);
    }
}
