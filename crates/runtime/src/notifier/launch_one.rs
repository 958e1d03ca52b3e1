//! Tells one event whose launch is reserved.

use caribou_core::notification::Happened;
use caribou_ports::event_sink::Told;

use super::desk::Desk;
use crate::survived::survived;

/// Tells it, within half the claim. `None` = this replica may not act, and nothing was sent.
pub(super) async fn launch_one(desk: &Desk, told: &Told) -> Option<Happened> {
    // The process may have stood still since the claim.
    if !desk.membership.may_act() {
        return None;
    }
    let bound = desk.limits.call_timeout();
    Some(match tokio::time::timeout(bound, survived(desk.sink.launch(told))).await {
        Ok(Some(launched)) => launched.into(),
        Ok(None) => Happened::Unclear("a fault of ours: the sink broke off".to_owned()),
        Err(_) => Happened::Unclear(format!("the receiver did not answer within {} s", bound.as_secs_f64())),
    })
}
