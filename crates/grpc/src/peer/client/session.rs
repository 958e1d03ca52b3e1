//! A session of another replica.

use std::sync::Arc;

use caribou_core::ids::{Epoch, SessionKey};
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{
    CallError, Disconnect, RawRequest, Session, SessionFacts, TaskQuestion, ToolCall, ToolListing,
};
use caribou_ports::peers::{PeerAnswer, PeerRequest};
use serde_json::value::RawValue;
use tokio::sync::watch;

use super::exchange::ask;
use super::link::Link;

/// A session of another replica, for as long as that one holds it.
pub(super) struct SessionThere {
    standing: Arc<Standing>,
    facts: SessionFacts,
}

/// What its requests have in common.
pub(super) struct Standing {
    pub(super) link: Arc<Link>,
    pub(super) key: SessionKey,
    pub(super) epoch: Epoch,
    ended: watch::Sender<Option<Disconnect>>,
}

impl SessionThere {
    /// One that was opened over `link`.
    pub(super) fn new(link: Arc<Link>, key: SessionKey, epoch: Epoch, facts: SessionFacts) -> Self {
        Self { standing: Arc::new(Standing { link, key, epoch, ended: watch::Sender::new(None) }), facts }
    }

    async fn ask<T>(
        &self,
        request: PeerRequest,
        expected: impl FnOnce(PeerAnswer) -> Option<T>,
    ) -> Result<T, CallError> {
        let answer = ask(self.standing.clone(), request).await?;
        expected(answer).ok_or_else(|| CallError::Malformed("a replica answered something else than asked".to_owned()))
    }
}

impl Standing {
    /// The session is over for us: it is looked up again.
    pub(super) fn end(&self, reason: impl Into<String>) -> Disconnect {
        let disconnect = Disconnect { reason: reason.into(), exit: None, stderr: String::new() };
        self.ended.send_if_modified(|ended| {
            let is_first = ended.is_none();
            if is_first {
                *ended = Some(disconnect.clone());
            }
            is_first
        });
        disconnect
    }

    /// How it ended, if it did.
    pub(super) fn ended(&self) -> Option<Disconnect> {
        if self.link.given_up.is_cancelled() {
            return Some(self.end(self.gone()));
        }
        self.ended.borrow().clone()
    }

    fn gone(&self) -> String {
        format!("replica {} takes no part any more", self.link.peer.boot)
    }
}

impl Session for SessionThere {
    fn facts(&self) -> &SessionFacts {
        &self.facts
    }

    fn call_tool(&self, call: ToolCall) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        Box::pin(self.ask(PeerRequest::CallTool(call), result))
    }

    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        Box::pin(self.ask(PeerRequest::Request(request), result))
    }

    fn task_questions(&self, task_id: &str) -> BoxFuture<'_, Result<Vec<TaskQuestion>, CallError>> {
        Box::pin(self.ask(PeerRequest::TaskQuestions(task_id.to_owned()), |answer| match answer {
            PeerAnswer::Questions(questions) => Some(questions),
            _ => None,
        }))
    }

    fn answer_task(
        &self,
        task_id: &str,
        question: &str,
        answer: Box<RawValue>,
    ) -> BoxFuture<'_, Result<bool, CallError>> {
        let (task_id, question) = (task_id.to_owned(), question.to_owned());
        Box::pin(self.ask(PeerRequest::AnswerTask { task_id, question, answer }, |answer| match answer {
            PeerAnswer::Answered(found) => Some(found),
            _ => None,
        }))
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<ToolListing, CallError>> {
        Box::pin(self.ask(PeerRequest::ListTools, |answer| match answer {
            PeerAnswer::Tools(listing) => Some(listing),
            _ => None,
        }))
    }

    /// Nothing: it is its owner's to close.
    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn ended(&self) -> BoxFuture<'static, Disconnect> {
        let standing = self.standing.clone();
        Box::pin(async move {
            let mut ended = standing.ended.subscribe();
            tokio::select! {
                Ok(ended) = ended.wait_for(Option::is_some) => ended.clone(),
                () = standing.link.given_up.cancelled() => None,
            }
            .unwrap_or_else(|| standing.end(standing.gone()))
        })
    }

    fn stderr_tail(&self) -> String {
        String::new()
    }
}

fn result(answer: PeerAnswer) -> Option<Box<RawValue>> {
    match answer {
        PeerAnswer::Result(result) => Some((*result).to_owned()),
        _ => None,
    }
}
