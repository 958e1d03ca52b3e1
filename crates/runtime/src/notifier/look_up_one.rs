//! Looks up one run that was launched.

use caribou_core::notification::Happened;
use caribou_ports::event_sink::{Run, Told};

use super::desk::Desk;
use crate::survived::survived;

/// Looks it up, within half the claim. `None` = this replica may not act, and nothing was asked.
pub(super) async fn look_up_one(desk: &Desk, told: &Told, run_id: Option<&str>) -> Option<Happened> {
    if !desk.membership.may_act() {
        return None;
    }
    // A launch that is on record has the name of its run.
    let Some(run_id) = run_id else { return Some(Run::NotFound.into()) };
    let bound = desk.limits.call_timeout();
    Some(match tokio::time::timeout(bound, survived(desk.sink.look_up(told, run_id))).await {
        Ok(Some(run)) => run.into(),
        Ok(None) => Happened::NotLookedUp("a fault of ours: the sink broke off".to_owned()),
        Err(_) => Happened::NotLookedUp(format!("the receiver did not answer within {} s", bound.as_secs_f64())),
    })
}
