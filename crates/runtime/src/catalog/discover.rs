//! One discovery of one server: open a session, list its tools, let go of the session.
//!
//! A child is started for this listing alone and ends after it, so that a look at the catalogue leaves nothing running; a
//! remote session stays open to hear of changes. The whole of it has one bound, `session_init_timeout` (contract 4.5).

use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::ServerConfig;
use caribou_core::credentials::CallerHeaders;
use caribou_core::failure::Code;
use caribou_core::ids::Scope;
use caribou_core::tool::ServerTools;
use caribou_ports::mcp::{CallError, SessionFacts};
use tokio::time::Instant;

use crate::config::Binding;
use crate::error::VerbError;
use crate::session::{Admitted, Handle, Router};

/// What a discovery found.
pub(crate) struct Discovery {
    pub(crate) tools: ServerTools,
    pub(crate) facts: SessionFacts,
}

/// Lists the tools of `server`: through the session that said its list changed, else through one of the catalogue's.
pub(crate) async fn discover(
    router: &Router,
    binding: &Binding,
    changed: Option<Arc<Handle>>,
    at_most: Duration,
) -> Result<Discovery, VerbError> {
    let server = &binding.server;
    let bound = server.session_init_timeout.unwrap_or(at_most);
    // What a server lists to one caller is not everybody's: such a session is not asked (invariant P1).
    let changed = changed.filter(|handle| handle.generation == binding.generation && handle.headers.is_none());
    if let Some(Ok(admitted)) = changed.map(|handle| handle.admit())
        && let Ok(discovery) = list(server, &admitted, bound, bound).await
    {
        return Ok(discovery);
    }
    let began = Instant::now();
    let admitted = router.admit(binding, &Scope::catalog(), &CallerHeaders::default()).await?;
    let discovery = list(server, &admitted, bound.saturating_sub(began.elapsed()), bound).await;
    if server.transport.owns_process() || discovery.is_err() {
        // Nobody who asked waits for its end, which takes as long as the child is given. It alone is closed: the other
        // replicas look for themselves, at the same time where a list has changed.
        admitted.handle.close();
    }
    discovery
}

async fn list(
    server: &ServerConfig,
    admitted: &Admitted,
    left: Duration,
    bound: Duration,
) -> Result<Discovery, VerbError> {
    let name = server.name.as_str();
    let listed = tokio::time::timeout(left, admitted.session.list_tools()).await;
    if let Ok(listed) = &listed {
        admitted.handle.asked(listed);
    }
    let listing = match listed {
        Ok(Ok(listing)) => listing,
        Ok(Err(error)) => return Err(failed(name, &error)),
        Err(_) => {
            let detail = format!(
                "server `{name}` did not finish tools/list within its session_init_timeout of {} s",
                bound.as_secs_f64()
            );
            return Err(VerbError::new(Code::Timeout, detail));
        }
    };
    let tools = ServerTools::read(server.shown_name(), server.tool_name_prefix, &listing.tools, listing.warnings);
    for warning in &tools.warnings {
        tracing::warn!(server = name, "{warning}");
    }
    Ok(Discovery { tools, facts: admitted.session.facts().clone() })
}

fn failed(server: &str, error: &CallError) -> VerbError {
    // A listing has no effects: that its outcome is unknown must not be read as that of the call which asked for it.
    let code = Some(error.code()).filter(|code| *code != Code::OutcomeUnknown).unwrap_or(Code::Unavailable);
    VerbError::new(code, format!("server `{server}` did not list its tools: {error}"))
}
