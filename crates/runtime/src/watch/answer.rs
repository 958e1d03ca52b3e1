//! What a watcher says about a key, and what that means for what it was asked.

use caribou_ports::event_sink::{Launched, Run};

/// An acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchAnswer {
    /// How it took the event.
    Launch(Launched),
    /// How the run is that it launched for the event.
    Run {
        /// What it calls the run.
        run_id: String,
        /// How it is.
        run: Run,
    },
}

/// What a watcher is asked about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// To take an event.
    Launch,
    /// How the run is.
    LookUp,
}

impl WatchAnswer {
    /// Which question it is made for.
    pub(super) fn question(&self) -> Question {
        match self {
            Self::Launch(_) => Question::Launch,
            Self::Run { .. } => Question::LookUp,
        }
    }

    /// Whether nothing that is asked under the same key could be answered otherwise. Other words may be said twice.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Launch(launched) => matches!(launched, Launched::Delivered | Launched::Run { .. }),
            Self::Run { run, .. } => matches!(run, Run::Succeeded | Run::Failed(_)),
        }
    }

    /// What it says of the launch. A watcher that speaks of its run has launched it.
    pub(super) fn launched(self) -> Launched {
        match self {
            Self::Launch(launched) => launched,
            Self::Run { run: Run::Running | Run::Succeeded | Run::Failed(_), run_id } => Launched::Run { run_id },
            Self::Run { .. } => Launched::Unclear("the watcher knows of no run and did not take the event".to_owned()),
        }
    }

    /// What it says of the run.
    pub(super) fn run(self) -> Run {
        match self {
            Self::Run { run, .. } => run,
            // It was told before that it has one, and says so again.
            Self::Launch(Launched::Run { .. } | Launched::Busy) => Run::Running,
            Self::Launch(Launched::Delivered) => Run::Succeeded,
            Self::Launch(Launched::NobodyThere) => Run::NobodyThere,
            Self::Launch(Launched::Gone(why) | Launched::Refused(why) | Launched::Unclear(why)) => Run::Error(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why() -> String {
        "why".to_owned()
    }

    fn of_run(run: Run) -> WatchAnswer {
        WatchAnswer::Run { run_id: "r".to_owned(), run }
    }

    #[test]
    fn whoever_speaks_of_its_run_has_launched_it() {
        // Contract 6.9, claimed: launch ok.
        let run = Launched::Run { run_id: "r".to_owned() };
        for ran in [Run::Running, Run::Succeeded, Run::Failed(why())] {
            assert_eq!(of_run(ran).launched(), run);
        }
        for unknown in [Run::NotFound, Run::Error(why())] {
            assert!(matches!(of_run(unknown).launched(), Launched::Unclear(_)));
        }
        assert_eq!(WatchAnswer::Launch(Launched::Busy).launched(), Launched::Busy);
    }

    #[test]
    fn a_run_ends_only_by_a_word_that_says_so() {
        // Contract 6.9, dispatched.
        let run = Launched::Run { run_id: "r".to_owned() };
        assert_eq!(WatchAnswer::Launch(run).run(), Run::Running);
        assert_eq!(WatchAnswer::Launch(Launched::Busy).run(), Run::Running);
        assert_eq!(WatchAnswer::Launch(Launched::Delivered).run(), Run::Succeeded);
        assert_eq!(WatchAnswer::Launch(Launched::Gone(why())).run(), Run::Error(why()));
        assert_eq!(of_run(Run::NotFound).run(), Run::NotFound);
    }
}
