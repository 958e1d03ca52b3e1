//! `logging/setLevel`: from which level on a legacy client hears log messages, for the rest of its session.

use caribou_core::raw::{Members, text};

use crate::fault::Fault;
use crate::meta::Level;
use crate::sessions::away;
use crate::work::Work;

pub(super) async fn run(work: &Work) -> Result<String, Fault> {
    let params = work.params.as_deref().and_then(Members::of);
    let level =
        params.as_ref().and_then(|params| text(params.get("level")?)).filter(|level| Level::parse(level).is_some());
    let (Some(level), Some(session)) = (level, &work.client.session) else {
        return Err(Fault::invalid_params("`params.level` must be one of the eight levels of the protocol"));
    };
    let sessions = &work.endpoint.options.sessions;
    sessions.set_client_log_level(session.clone(), level.into_owned()).await.map_err(away)?;
    Ok("{}".to_owned())
}
