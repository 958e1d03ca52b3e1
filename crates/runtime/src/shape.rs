//! The form a result is answered in: raw always, an agent's form beside it when asked for (contract 4.7).
//!
//! Owns the order: look at the thread's files before the call, make the form after it. Only children of this host have
//! files here, so results of remote servers are never searched for paths, and nothing is looked at for them. A look
//! that fails or takes too long costs translations, never the call, whose answer is in hand by then.

use std::path::PathBuf;
use std::sync::Arc;

use caribou_core::bounds::FILES_LOOK;
use caribou_core::config::{ServerConfig, Transport};
use caribou_core::ids::Scope;
use caribou_core::result::{AgentResult, Snapshot};
use caribou_ports::workspace::{ThreadFolders, Told};
use serde_json::value::RawValue;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// What a caller wants beside the raw result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Nothing.
    #[default]
    Raw,
    /// An agent's form.
    Agent {
        /// Whether text that imitates the framework is made harmless in it.
        neutralise: bool,
    },
}

/// The making of one agent's form, begun before its call.
pub(crate) struct Shaping {
    neutralise: bool,
    /// `None` when there are no files that the result could speak of.
    files: Option<Files>,
}

struct Files {
    folders: Arc<dyn ThreadFolders>,
    scope: Scope,
    cwd: Option<PathBuf>,
    before: Snapshot,
}

impl Shaping {
    /// Looks at the thread's files where that will be needed; `None` when only the raw result is wanted.
    pub(crate) async fn begin(
        shape: Shape,
        folders: Option<&Arc<dyn ThreadFolders>>,
        server: &ServerConfig,
        scope: &Scope,
    ) -> Option<Self> {
        let Shape::Agent { neutralise } = shape else { return None };
        let files = match (folders, &server.transport) {
            (Some(folders), Transport::Stdio(stdio)) => {
                let before = timeout(FILES_LOOK, folders.snapshot(scope)).await.unwrap_or_default();
                Some(Files { folders: folders.clone(), scope: scope.clone(), cwd: stdio.cwd.clone(), before })
            }
            _ => None,
        };
        Some(Self { neutralise, files })
    }

    /// For a result that no server gave: it is ready, so no path in it is translated (contract 4.7).
    pub(crate) fn of_ready(shape: Shape) -> Option<Self> {
        let Shape::Agent { neutralise } = shape else { return None };
        Some(Self { neutralise, files: None })
    }

    /// The form of `result`.
    pub(crate) async fn finish(self, result: &RawValue) -> AgentResult {
        let neutralise = self.neutralise;
        match self.off_thread(result).await {
            Some(form) => form,
            // The disk hangs or the replica stops: the paths stay as they are, but the answer is in hand.
            None => {
                let form = AgentResult::of(result);
                if neutralise { form.neutralised() } else { form }
            }
        }
    }

    /// Results can be megabytes, so they are read where that keeps nobody waiting.
    async fn off_thread(self, result: &RawValue) -> Option<AgentResult> {
        let result = result.to_owned();
        let mut form = spawn_blocking(move || AgentResult::of(&result)).await.ok()?;
        if let Some(Files { folders, scope, cwd, before }) = self.files {
            let told = Told { result: form, cwd, before };
            form = timeout(FILES_LOOK, folders.translate(&scope, told)).await.ok().flatten()?;
        }
        if !self.neutralise {
            return Some(form);
        }
        // Last, so that the name of a file cannot bring in what a text may not.
        spawn_blocking(|| form.neutralised()).await.ok()
    }
}
