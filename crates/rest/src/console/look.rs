//! One look at everything that pages show: a mark for each section, which differs when the section does.
//!
//! Asks the verbs that pages ask, as the program itself; only the marks leave. What grows with time alone, such as an
//! age, is no change. A section that cannot be read has no mark.

use std::hash::{DefaultHasher, Hash, Hasher};

use caribou_core::failure::Code;
use caribou_runtime::{AuditFilter, Caller, Door, Runtime, StoredTask, TaskFilter, VerbError};

use super::section::BySection;

/// Tasks looked at, of those that go on and of the newest: the first page of each.
const TASKS: u32 = 50;

/// The marks of one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// In the order of the sections.
    pub(super) of: BySection<Option<u64>>,
    /// Whether something could not be asked: a store that is away should be asked less often.
    pub(super) is_troubled: bool,
}

/// Looks once.
pub(super) async fn look(runtime: &Runtime) -> Marks {
    let caller = Caller::local(Door::Rest);
    let mut marks = Marks::default();
    let read = [
        replicas(runtime, &caller).await,
        Ok(servers(runtime, &caller).await),
        Ok(sessions(runtime, &caller).await),
        tasks(runtime, &caller).await,
        chains(runtime, &caller).await,
        audit(runtime, &caller).await,
        configuration(runtime, &caller).await,
    ];
    for (mark, read) in marks.of.iter_mut().zip(read) {
        match read {
            Ok(read) => *mark = Some(read),
            Err(error) => marks.is_troubled |= error.code != Code::NotFound,
        }
    }
    marks
}

fn mark(parts: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

async fn replicas(runtime: &Runtime, caller: &Caller) -> Result<u64, VerbError> {
    let replicas = runtime.replicas(caller).await?;
    let parts = replicas.iter().map(|replica| {
        // In hundredths: less is no news.
        let load = (replica.load * 100.0).to_string();
        (replica.boot.as_str(), replica.is_alive, replica.is_draining, load)
    });
    Ok(mark(parts.collect::<Vec<_>>()))
}

async fn servers(runtime: &Runtime, caller: &Caller) -> u64 {
    let servers = runtime.servers(caller).await;
    let parts = servers.iter().map(|server| {
        let counts = (server.tools, server.denied, server.sessions);
        (server.name.as_str(), server.state.as_str(), counts, &server.last_error, &server.warnings)
    });
    mark(parts.collect::<Vec<_>>())
}

async fn sessions(runtime: &Runtime, caller: &Caller) -> u64 {
    let mut sessions = runtime.sessions(caller).await;
    sessions.sort_by(|a, b| (&a.server, &a.scope).cmp(&(&b.server, &b.scope)));
    let parts = sessions.iter().map(|session| {
        let scope = (session.scope.user.as_str(), session.scope.thread.as_str());
        (session.server.as_str(), scope, session.epoch.0, session.replica.as_str(), session.in_flight)
    });
    mark(parts.collect::<Vec<_>>())
}

async fn tasks(runtime: &Runtime, caller: &Caller) -> Result<u64, VerbError> {
    if !runtime.follows_tasks() {
        return Ok(0);
    }
    let going_on = TaskFilter { is_active: Some(true), ..TaskFilter::default() };
    let going_on = runtime.list_all_tasks(caller, going_on, None, TASKS).await?;
    let newest = runtime.list_all_tasks(caller, TaskFilter::default(), None, TASKS).await?;
    let part = |task: &StoredTask| (task.task.to_string(), task.updated_us, task.snapshot.status.error_code());
    Ok(mark(going_on.iter().chain(&newest).map(part).collect::<Vec<_>>()))
}

async fn chains(runtime: &Runtime, caller: &Caller) -> Result<u64, VerbError> {
    let chains = runtime.oauth_chains(caller).await?;
    let parts = chains
        .iter()
        .map(|chain| (chain.server.as_str(), chain.state, chain.generation, chain.failures, chain.changed_at_us));
    Ok(mark(parts.collect::<Vec<_>>()))
}

async fn audit(runtime: &Runtime, caller: &Caller) -> Result<u64, VerbError> {
    let newest = runtime.read_audit(caller, AuditFilter::default(), 1).await?;
    Ok(mark(newest.first().map(|row| row.id)))
}

async fn configuration(runtime: &Runtime, caller: &Caller) -> Result<u64, VerbError> {
    let view = runtime.read_config(caller).await?;
    let stale = runtime.stale_config().map(|stale| stale.reason);
    Ok(mark((view.etag.map(|tag| tag.to_string()), view.pending_restart.len(), stale)))
}
