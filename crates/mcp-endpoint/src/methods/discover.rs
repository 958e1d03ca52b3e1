//! `server/discover`: which revisions are served without a session, and what there is.

use serde_json::json;

use super::offers;
use crate::era::STATELESS;
use crate::fault::Fault;
use crate::work::Work;

pub(super) async fn run(work: &Work) -> Result<String, Fault> {
    let offers = offers(&work.endpoint, &work.client.scope, &work.client.asked.place).await?;
    Ok(json!({ "supportedVersions": STATELESS, "capabilities": offers.capabilities() }).to_string())
}
