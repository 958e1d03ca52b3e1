//! Brings the remote the answers that wait for it. They stay stored until the remote took them, and carry their names:
//! after a crash the same ones are brought again, and the remote can tell.

use caribou_core::bounds;
use caribou_ports::store::ClaimedTask;
use tokio::time::timeout;

use super::desk::Desk;
use super::road::pinned_at;
use super::servers::Turn;
use super::work::{Done, handle};

pub(super) async fn answer_one(desk: &Desk, task: &ClaimedTask, turn: Option<&Turn>) -> Done {
    let Ok(Ok(answers)) = timeout(bounds::STORE_REQUEST, desk.store.waiting_answers(task.claim.task)).await else {
        return Done::Release;
    };
    let done = if answers.is_empty() {
        Ok(())
    } else {
        let question = async {
            let (driver, upstream) = desk.reach(task, pinned_at(task)).await?;
            driver.answer(&*upstream, handle(task), &answers).await
        };
        desk.ask(turn, question).await
    };
    Done::Settle(desk.judge(task).answered(answers, done))
}
