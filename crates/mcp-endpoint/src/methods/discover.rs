//! `server/discover`: which revisions are served without a session, and what there is.

use caribou_core::task::native::TASKS_EXTENSION;
use serde_json::json;

use super::offers;
use crate::era::STATELESS;
use crate::fault::Fault;
use crate::work::Work;

pub(super) async fn run(work: &Work) -> Result<String, Fault> {
    let offers = offers(&work.endpoint, &work.client.scope, &work.client.asked.place).await?;
    let mut capabilities = offers.capabilities();
    if work.endpoint.runtime.follows_tasks() {
        capabilities["extensions"] = json!({ TASKS_EXTENSION: {} });
    }
    Ok(json!({ "supportedVersions": STATELESS, "capabilities": capabilities }).to_string())
}
