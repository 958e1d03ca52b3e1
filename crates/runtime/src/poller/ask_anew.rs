//! Asks a server whether it has kept a task whose session is gone (architecture.md §10, pinned tasks): in the session
//! that is open now, or is opened for this. A task that it knows lives there from now on, and is followed further.

use caribou_core::task::{Duty, LOST, Pin, Status};
use caribou_ports::store::{ClaimedTask, Settled};

use super::desk::Desk;
use super::servers::Turn;
use super::settle::persist;
use super::work::{Done, handle};

pub(super) async fn ask_anew(desk: &Desk, task: &ClaimedTask, turn: Option<&Turn>) -> Done {
    let question = async {
        let (driver, upstream) = desk.reach(task, None).await?;
        let report = driver.status(&*upstream, handle(task)).await?;
        Ok((report, upstream.session_id()))
    };
    let (report, session) = match desk.ask(turn, question).await {
        Ok(answer) => answer,
        Err(error) => return Done::Settle(desk.judge(task).not_kept(&error)),
    };
    let Some(pin) = session.as_deref().and_then(Pin::parse).filter(|_| !report.is_unknown) else {
        return Done::Settle(desk.judge(task).ended(Status::Failed, LOST));
    };
    let moved = persist("where a task lives now", || desk.store.move_pin(task.claim.clone(), pin.clone())).await;
    if moved != Some(Settled::Settled) {
        return Done::Release;
    }
    tracing::info!(task = %task.claim.task, "the server has kept a task beyond its restart");
    let task = ClaimedTask { session_id: Some(pin.to_string()), ..task.clone() };
    desk.road.keep_session(&task, Some(desk.limits.poll_interval()));
    match task.duty {
        Duty::Poll | Duty::Quarantine => Done::Settle(desk.judge(&task).polled(Ok(report))),
        // What is to be done is done there, by the next attempt.
        Duty::Submit | Duty::Cancel | Duty::Answer => Done::Release,
    }
}
