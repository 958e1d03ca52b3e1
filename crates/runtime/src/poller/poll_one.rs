//! Asks the remote how one task is (contract 6.5). Without effects at the remote, so whatever breaks off is asked again.

use caribou_ports::store::ClaimedTask;

use super::desk::Desk;
use super::outcome::Outcome;
use super::road::pinned_at;
use super::servers::Turn;
use super::work::handle;

pub(super) async fn poll_one(desk: &Desk, task: &ClaimedTask, turn: Option<&Turn>) -> Outcome {
    let question = async {
        let (driver, upstream) = desk.reach(task, pinned_at(task)).await?;
        driver.status(&*upstream, handle(task)).await
    };
    let answer = desk.ask(turn, question).await;
    desk.judge(task).polled(answer)
}
