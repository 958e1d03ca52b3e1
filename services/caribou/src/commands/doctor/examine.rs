//! All checks, those that do not need one another at once, each with its deadline. What is told comes in one order,
//! however long each took.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use indicatif::ProgressBar;

use super::finding::{Finding, State};
use super::ground::Ground;
use super::{
    addresses, clock, credentials, database, document, files, limits, peers, programs, redis, servers, settings,
};
use crate::settings::ConfigOrigin;

/// The checks that wait for the database or the document get that much longer: their own part has the whole deadline.
const BEHIND: u32 = 2;

/// The servers end by themselves a little after the deadline, and are then closed.
const CLOSING: Duration = Duration::from_secs(30);

/// What one check found.
pub(super) struct Report {
    /// The check.
    pub(super) check: &'static str,
    /// What it found, never nothing.
    pub(super) findings: Vec<Finding>,
    /// How long it took.
    pub(super) took: Duration,
}

/// Shows what is still being looked at.
pub(super) struct Board {
    bar: Option<ProgressBar>,
    waiting: Mutex<Vec<&'static str>>,
}

impl Board {
    /// On a terminal a bar says what is awaited; elsewhere nothing is shown.
    pub(super) fn new(bar: Option<ProgressBar>) -> Self {
        Self { bar, waiting: Mutex::default() }
    }

    fn change(&self, change: impl FnOnce(&mut Vec<&'static str>)) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut waiting);
        if let Some(bar) = &self.bar {
            bar.set_message(format!("looking at {}", waiting.join(", ")));
        }
    }

    /// Runs one check with a bound.
    async fn run(
        &self,
        ground: &Ground,
        check: &'static str,
        bound: Duration,
        work: impl Future<Output = Vec<Finding>>,
    ) -> Report {
        self.change(|waiting| waiting.push(check));
        let begun = Instant::now();
        let findings = tokio::time::timeout(bound, work).await.unwrap_or_else(|_| vec![ground.late()]);
        self.change(|waiting| waiting.retain(|other| *other != check));
        Report { check, findings, took: begun.elapsed() }
    }
}

/// Looks at everything.
pub(super) async fn examine(ground: &Ground, board: &Board) -> Vec<Report> {
    let once = ground.deadline;
    let behind = once * BEHIND;
    let database = database::check(ground).shared();
    let store = async { database.clone().await.1 };
    let document = async {
        // A file needs nobody; a database that is away must not hold it up.
        let store = match ground.settings.config.source {
            ConfigOrigin::Database => database.clone().await.1,
            ConfigOrigin::File => None,
        };
        document::check(ground, store.as_ref()).await
    };
    let document = document.shared();
    let store = store.shared();
    let kept = || async { document.clone().await.1 };
    let servers = async { servers::check(ground, kept().await.map(|kept| kept.document).as_ref()).await };
    let credentials = async {
        let (kept, store) = (kept().await, store.clone().await);
        credentials::check(ground, kept.map(|kept| kept.document).as_ref(), store.as_ref()).await
    };
    let addresses = async { addresses::check(ground, kept().await.map(|kept| kept.document).as_ref()).await };
    let programs = async { programs::check(ground, kept().await.map(|kept| kept.document).as_ref()) };
    let reports = futures::join!(
        board.run(ground, "settings", once, async { settings::check(ground) }),
        board.run(ground, "configuration", behind, async { document.clone().await.0 }),
        board.run(ground, "database", behind, async { database.clone().await.0 }),
        board.run(ground, "clock", behind, async { clock::check(ground, store.clone().await.as_ref()).await }),
        board.run(ground, "redis", once, redis::check(ground)),
        board.run(ground, "peers", behind, async { peers::check(ground, store.clone().await.as_ref()).await }),
        board.run(ground, "names", behind, addresses),
        board.run(ground, "credentials", behind, credentials),
        board.run(ground, "files", behind, async { files::check(ground, kept().await.as_ref()) }),
        board.run(ground, "limits", once, async { limits::check(ground) }),
        board.run(ground, "programs", behind, programs),
        board.run(ground, "servers", behind + CLOSING, Box::pin(servers)),
    );
    if let Some(store) = store.await {
        store.close().await;
    }
    let (settings, configuration, database, clock, redis, peers, names, credentials, files, limits, programs, servers) =
        reports;
    vec![settings, configuration, database, clock, redis, peers, names, credentials, files, limits, programs, servers]
}

/// Whether a replica would work.
pub(super) fn is_well(reports: &[Report]) -> bool {
    reports.iter().flat_map(|report| &report.findings).all(|finding| finding.state != State::Failed)
}
