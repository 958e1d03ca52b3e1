//! One claimed delivery, from the claim to what is stored of it.

use caribou_core::notification::{Delivery, Happened, Step};
use caribou_ports::event_sink::Told;
use caribou_ports::store::{ClaimedDelivery, Reserved};

use super::desk::Desk;
use super::launch_one::launch_one;
use super::look_up_one::look_up_one;
use crate::poller::persist;

/// Works on it. Breaks off at any point without harm when it is dropped.
pub(super) async fn work(desk: &Desk, claimed: ClaimedDelivery) {
    let delivery = &claimed.delivery;
    let happened = match delivery.step() {
        Step::GiveUp => Some(Happened::GaveUp),
        Step::Reserve(seq) => match reserve(desk, &claimed, seq).await {
            Some(reserved) => launch_one(desk, &told(&claimed, &reserved)).await,
            None => None,
        },
        Step::LaunchAgain(_) => launch_one(desk, &told(&claimed, delivery)).await,
        Step::LookUp(_) => look_up_one(desk, &told(&claimed, delivery), delivery.run_id.as_deref()).await,
    };
    if let Some(happened) = happened {
        desk.settle(&claimed, happened).await;
    }
}

/// Reserves the launch, before anything is sent. `None` = nothing may be sent.
async fn reserve(desk: &Desk, claimed: &ClaimedDelivery, seq: i64) -> Option<Delivery> {
    // Reserved twice, because the first answer was lost, it is superseded by itself: the next claim launches it.
    let reserved = persist("the reservation of a launch", || desk.store.reserve_launch(claimed.claim.clone(), seq));
    match reserved.await? {
        Reserved::Reserved(delivery) => Some(delivery),
        Reserved::Superseded => {
            desk.metrics.happened("superseded");
            None
        }
        Reserved::Fenced => {
            desk.metrics.happened("fenced");
            None
        }
    }
}

fn told(claimed: &ClaimedDelivery, delivery: &Delivery) -> Told {
    Told {
        key: delivery.key(claimed.claim.task),
        scope: claimed.scope.clone(),
        server: claimed.server.clone(),
        run_id: claimed.run_id.clone(),
        body: claimed.event.body.clone(),
        at_us: claimed.event.at_us,
    }
}
