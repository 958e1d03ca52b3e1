//! Where a pinned task lives, when that changes: its server has kept it beyond a restart.

use caribou_core::task::Pin;
use caribou_ports::store::{Settled, StoreError, TaskClaim};
use sqlx::Connection as _;
use uuid::Uuid;

use crate::sql::SqlStore;
use crate::sql::pools::change;
use crate::sql::replicas::uuid;
use crate::sql::statement::{Statement, statement};

/// The condition is the fence of the claim (invariant C1).
const LEAVE_TO: Statement = statement!(
    "UPDATE mcp_work SET pinned_to = $4
     WHERE task_id = $1 AND claim_seq = $2 AND claim_owner = $3 AND due_at > " NOW
);

const NAME_SESSION: Statement = statement!("UPDATE mcp_task SET session_id = $2 WHERE task_id = $1");

/// Notes it; the claim goes on.
pub(super) async fn move_pin(store: &SqlStore, claim: TaskClaim, pin: Pin) -> Result<Settled, StoreError> {
    let (task, owner) = (Uuid::from_bytes(claim.task.0), uuid(&claim.token.owner)?);
    let to = uuid(&pin.boot)?;
    change!(store, |connection, word| {
        let mut moving = connection.begin().await?;
        let leave = sqlx::query(word(LEAVE_TO)).bind(task).bind(claim.token.seq).bind(owner).bind(to);
        if leave.execute(&mut *moving).await?.rows_affected() == 0 {
            return Ok(Settled::Fenced);
        }
        sqlx::query(word(NAME_SESSION)).bind(task).bind(pin.to_string()).execute(&mut *moving).await?;
        moving.commit().await.map(|()| Settled::Settled)
    })
}
