//! Which method a request is answered by. A name that is unknown, of the other era, or not offered at this place is no
//! method here (mcp.md §2.4).

use caribou_core::era::Era;

use super::{call_tool, discover, list_tools, pass, set_level, subscribe, tasks};
use crate::fault::Fault;
use crate::notices::Notices;
use crate::work::Work;

/// Does what `work` asks for.
pub(crate) async fn run(work: &mut Work, notices: &Notices) -> Result<String, Fault> {
    let method = work.method.clone();
    match (&*method, work.client.era) {
        ("tools/call", _) => call_tool::run(work, notices).await,
        ("tools/list", _) => list_tools::run(work).await,
        ("server/discover", Era::Modern) => discover::run(work).await,
        ("ping", Era::Legacy) => Ok("{}".to_owned()),
        ("logging/setLevel", Era::Legacy) => set_level::run(work).await,
        (method, era) if tasks::is_one(method, era) => tasks::run(work, notices).await,
        ("resources/subscribe", Era::Legacy) => subscribe::run(work, true).await,
        ("resources/unsubscribe", Era::Legacy) => subscribe::run(work, false).await,
        _ => pass::run(work, notices).await,
    }
}
