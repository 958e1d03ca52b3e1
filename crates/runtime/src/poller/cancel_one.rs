//! Asks the remote to end one task (contract 6.10). One attempt at a time over all replicas: it holds the claim, and
//! a repeated request changes nothing of it.

use caribou_ports::store::ClaimedTask;

use super::desk::Desk;
use super::outcome::Outcome;
use super::road::pinned_at;
use super::servers::Turn;
use super::work::handle;

pub(super) async fn cancel_one(desk: &Desk, task: &ClaimedTask, turn: Option<&Turn>) -> Outcome {
    let question = async {
        let (driver, upstream) = desk.reach(task, pinned_at(task)).await?;
        driver.cancel(&*upstream, handle(task)).await
    };
    let answer = desk.ask(turn, question).await;
    desk.judge(task).cancelled(answer)
}
