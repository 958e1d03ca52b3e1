//! One change, from the stored text to the new one, judged on the way. Runs inside the source's write lock.

use std::path::Path;
use std::sync::Arc;

use caribou_core::config::edit::{self, EditRefusal, Edited};
use caribou_core::config::{IfMatch, Source};
use caribou_core::ids::ServerName;
use caribou_core::launch::{Allowlist, Request, judge};
use caribou_ports::config_source::{Edit, Variables};

use crate::api::change_config::ConfigChange;

/// Is told of each server that the launch policy refuses.
pub(crate) type LaunchRefused = Box<dyn Fn(&ServerName) + Send>;

/// A change as it was asked for.
pub(crate) struct Change {
    pub(crate) change: ConfigChange,
    /// Who asked for it.
    pub(crate) by: Arc<str>,
    /// What must be stored for it to be made.
    pub(crate) condition: IfMatch,
    pub(crate) launch_refused: LaunchRefused,
}

/// The edit that makes `change` to a document at `file`.
pub(super) fn written(
    change: ConfigChange,
    launch_refused: LaunchRefused,
    file: &Path,
    variables: Variables,
    allowlist: Allowlist,
) -> Edit {
    let file = file.to_owned();
    Box::new(move |stored| {
        let edited = made(&change, &Source { file: &file, text: stored })?;
        judged(&edited, &file, &variables, &allowlist, &launch_refused)?;
        Ok(edited.text)
    })
}

fn made(change: &ConfigChange, stored: &Source<'_>) -> Result<Edited, EditRefusal> {
    match change {
        ConfigChange::ReplaceAll(servers) => edit::replace_all(stored, servers),
        ConfigChange::Add(servers) => edit::add(stored, servers),
        ConfigChange::Replace { name, server } => edit::replace_one(stored, name, server),
        ConfigChange::SetEnabled { name, enabled } => edit::set_enabled(stored, name, *enabled),
        ConfigChange::Remove { name } => edit::remove(stored, name),
    }
}

/// What the change wrote must load, and may be started (contract 3: only what comes by the API is judged).
fn judged(
    edited: &Edited,
    file: &Path,
    variables: &Variables,
    allowlist: &Allowlist,
    launch_refused: &LaunchRefused,
) -> Result<(), EditRefusal> {
    let entries = edit::candidates(file, &edited.changed, &|name| variables(name))?;
    for entry in &entries {
        let Ok(server) = &entry.config else { continue };
        if let Some(request) = Request::of(server) {
            judge(&request, allowlist).map_err(|refusal| {
                launch_refused(&entry.name);
                tracing::warn!(server = %entry.name, "a change is refused by the launch policy: the server {refusal}");
                EditRefusal::Invalid(format!("MCP server '{}' {refusal}", entry.name))
            })?;
        }
    }
    Ok(())
}
