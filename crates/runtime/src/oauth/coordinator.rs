//! One refresh at a time: everybody who needs a token meanwhile waits for the same one.
//!
//! Owns when a request is made. A failure is told to all who waited for it, and for a moment to whoever comes after, so
//! that a broken endpoint is not asked once for each caller.

use std::sync::Arc;

use caribou_core::bounds::{MAX_WAITING_FOR_TOKEN, TOKEN_RETRY};
use caribou_ports::access_token::{AccessToken, NoToken};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::connection::{Chain, Desk};
use super::stored::Purpose;
use crate::survived::survived;

pub(super) struct Coordinator;

pub(super) enum CoordinatorMessage {
    /// A caller found no good token.
    Want(Waiter),
    /// The token in hand is getting old.
    Ahead,
    /// Somebody wants another token, whatever is there.
    Another(Waiter),
    /// The refresh ended.
    Refreshed(Result<AccessToken, NoToken>),
}

/// Who waits for a token.
pub(super) type Waiter = oneshot::Sender<Result<AccessToken, NoToken>>;

pub(super) struct CoordinatorState {
    desk: Arc<Desk>,
    /// Who waits for the refresh now running.
    waiters: Vec<Waiter>,
    /// Who waits for it to end, and then for another token. Bounded as they are.
    for_another: Vec<Waiter>,
    /// Why the refresh now running was begun.
    running: Option<Purpose>,
    /// The last failure, and until when it is the answer.
    failed: Option<(NoToken, Instant)>,
}

impl Actor for Coordinator {
    type Msg = CoordinatorMessage;
    type State = CoordinatorState;
    type Arguments = Arc<Desk>;

    async fn pre_start(&self, _: ActorRef<Self::Msg>, desk: Arc<Desk>) -> Result<Self::State, ActorProcessingErr> {
        Ok(CoordinatorState { desk, waiters: Vec::new(), for_another: Vec::new(), running: None, failed: None })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            CoordinatorMessage::Want(waiter) => state.want(&myself, waiter),
            CoordinatorMessage::Ahead if state.running.is_some() => {}
            CoordinatorMessage::Ahead => state.begin(&myself, Purpose::Ahead),
            CoordinatorMessage::Another(waiter) => {
                // Of a shared chain one that runs may only find what is stored, and that is no other token.
                let brings_another = matches!(state.desk.chain, Chain::Memory(_));
                match state.running {
                    None => {
                        state.join(waiter);
                        state.begin(&myself, Purpose::Another);
                    }
                    Some(purpose) if brings_another || purpose == Purpose::Another => state.join(waiter),
                    Some(_) => line_up(&mut state.for_another, waiter),
                }
            }
            CoordinatorMessage::Refreshed(outcome) => {
                state.refreshed(&outcome);
                if !state.for_another.is_empty() {
                    state.waiters.append(&mut state.for_another);
                    state.begin(&myself, Purpose::Another);
                }
            }
        }
        Ok(())
    }
}

impl CoordinatorState {
    fn want(&mut self, myself: &ActorRef<CoordinatorMessage>, waiter: Waiter) {
        if self.running.is_some() {
            return self.join(waiter);
        }
        // Somebody else's refresh may have ended since the caller looked (contract 7.3, double check).
        let known = self.desk.in_hand().or_else(|| {
            self.failed.as_ref().filter(|(_, until)| *until > Instant::now()).map(|(failure, _)| Err(failure.clone()))
        });
        if let Some(known) = known {
            let _ = waiter.send(known);
            return;
        }
        self.join(waiter);
        self.begin(myself, Purpose::Needed);
    }

    fn join(&mut self, waiter: Waiter) {
        line_up(&mut self.waiters, waiter);
    }

    fn begin(&mut self, myself: &ActorRef<CoordinatorMessage>, purpose: Purpose) {
        self.running = Some(purpose);
        let (desk, to) = (self.desk.clone(), myself.clone());
        tokio::spawn(async move {
            let server = desk.server.clone();
            let outcome = survived(desk.refreshed(purpose)).await.unwrap_or_else(|| {
                let message = format!("server `{server}` has no access token: this is a fault of Caribou");
                Err(NoToken { message, needs_person: false })
            });
            let _ = to.cast(CoordinatorMessage::Refreshed(outcome));
        });
    }

    fn refreshed(&mut self, outcome: &Result<AccessToken, NoToken>) {
        self.running = None;
        self.failed = outcome.as_ref().err().map(|failure| (failure.clone(), Instant::now() + TOKEN_RETRY));
        for waiter in self.waiters.drain(..) {
            let _ = waiter.send(outcome.clone());
        }
    }
}

/// Puts one more in a line. Whoever gave up meanwhile has left its place to others, so it is cleared at its bound.
fn line_up(line: &mut Vec<Waiter>, waiter: Waiter) {
    if line.len() >= MAX_WAITING_FOR_TOKEN {
        line.retain(|waiter| !waiter.is_closed());
    }
    line.push(waiter);
}
