//! `caribou.v1.TaskService`: the rules of the task routes over REST, on this door (contract 2.3).
//!
//! Each method: who calls, for whom, one verb. Nothing is decided here, and nothing but a submit waits for a server.

use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::ids::{ServerName, ThreadId, UserId};
use caribou_proto::v1;
use caribou_proto::v1::task_service_server::TaskService;
use caribou_proto::v1::watch_tasks::Request as Asked;
use caribou_runtime::{PageKey, Runtime, StoredTask, TaskFilter, VerbError};
use serde_json::value::RawValue;
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};

use super::follow::{self, Changes};
use super::named::{Named, request_id};
use super::watching::{self, Events};
use crate::{convert, deadline, identity, status};

/// Tasks of an answer when nothing is said, and the most.
const USUAL: u32 = 50;
const MOST: u32 = 100;

/// The tasks of one replica.
pub(super) struct Tasks {
    pub(super) runtime: Runtime,
    /// How long a watcher may take to say what it wants.
    pub(super) patience: Duration,
    /// Closes when the replica stops.
    pub(super) stopped: watch::Receiver<()>,
}

impl Tasks {
    fn degraded_after(&self) -> Option<u32> {
        self.runtime.task_limits().map(|limits| limits.tracking_degraded_after_errors)
    }

    fn detailed(&self, task: StoredTask) -> Response<v1::Task> {
        Response::new(convert::detailed(task, self.degraded_after()))
    }
}

/// How many tasks are asked for.
fn limit(name: &str, asked: u32) -> Result<u32, Status> {
    match asked {
        0 => Ok(USUAL),
        1..=MOST => Ok(asked),
        _ => Err(status::invalid(format!("`{name}` must be from 1 to {MOST}, or 0 for {USUAL}"))),
    }
}

/// `None` when nothing is said.
fn said(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

#[tonic::async_trait]
impl TaskService for Tasks {
    type WatchTaskStream = Changes;
    type WatchStream = Events;

    async fn submit(
        &self,
        request: Request<v1::SubmitTaskRequest>,
    ) -> Result<Response<v1::SubmitTaskResponse>, Status> {
        let bound = deadline::of(request.metadata())?;
        let id = request_id(&request);
        let caller = identity::caller(&self.runtime, request.metadata(), &id).await?;
        let request = convert::submitting(request.into_inner());
        let scope = identity::scope(&caller, request.scope.as_ref())?;
        let call = convert::into_call(request, caller, scope, bound, id.clone())?;
        let called = self.runtime.call_tool(call).await.map_err(status::of)?;
        Ok(Response::new(convert::submitted(&called, id.as_str())))
    }

    async fn get(&self, request: Request<v1::GetTaskRequest>) -> Result<Response<v1::Task>, Status> {
        let bound = deadline::of(request.metadata())?;
        let reading = async {
            let Named { caller, scope } = Named::of(&self.runtime, &request, request.get_ref().scope.as_ref()).await?;
            self.runtime.read_task(&caller, &scope, &request.get_ref().task_id).await.map_err(status::of)
        };
        Ok(self.detailed(deadline::within(bound, reading).await?))
    }

    async fn list(&self, request: Request<v1::ListTasksRequest>) -> Result<Response<v1::ListTasksResponse>, Status> {
        let bound = deadline::of(request.metadata())?;
        let listing = async {
            let asked = request.get_ref();
            let Named { caller, scope } = Named::of(&self.runtime, &request, asked.scope.as_ref()).await?;
            let limit = limit("limit", asked.limit)?;
            self.runtime.list_tasks(&caller, &scope, limit).await.map_err(status::of)
        };
        let tasks = deadline::within(bound, listing).await?;
        let degraded_after = self.degraded_after();
        let tasks = tasks.iter().map(|task| convert::task(task, degraded_after)).collect();
        Ok(Response::new(v1::ListTasksResponse { tasks }))
    }

    async fn list_all(
        &self,
        request: Request<v1::ListAllTasksRequest>,
    ) -> Result<Response<v1::ListAllTasksResponse>, Status> {
        let bound = deadline::of(request.metadata())?;
        let asked = request.get_ref();
        let limit = limit("page_size", asked.page_size)?;
        let unreadable = || status::invalid("`page_token` must be the `next_page_token` of the page before, unchanged");
        let before = said(&asked.page_token).map(|text| PageKey::parse(text).ok_or_else(unreadable)).transpose()?;
        let listing = async {
            let caller = identity::caller(&self.runtime, request.metadata(), &request_id(&request)).await?;
            let filter = TaskFilter {
                user: said(&asked.user_id).map(UserId::new),
                thread: said(&asked.thread_id).map(ThreadId::new),
                server: said(&asked.server).map(ServerName::new),
                is_active: asked.active,
            };
            self.runtime.list_all_tasks(&caller, filter, before, limit).await.map_err(status::of)
        };
        let tasks = deadline::within(bound, listing).await?;
        let is_full = u32::try_from(tasks.len()).is_ok_and(|count| count == limit);
        let next = tasks.last().filter(|_| is_full).map(|task| task.page_key().to_string());
        let degraded_after = self.degraded_after();
        let tasks = tasks.iter().map(|task| convert::anybodys(task, degraded_after)).collect();
        Ok(Response::new(v1::ListAllTasksResponse { tasks, next_page_token: next.unwrap_or_default() }))
    }

    async fn cancel(&self, request: Request<v1::CancelTaskRequest>) -> Result<Response<v1::Task>, Status> {
        let bound = deadline::of(request.metadata())?;
        let cancelling = async {
            let Named { caller, scope } = Named::of(&self.runtime, &request, request.get_ref().scope.as_ref()).await?;
            self.runtime.cancel_task(&caller, &scope, &request.get_ref().task_id).await.map_err(status::of)
        };
        Ok(self.detailed(deadline::within(bound, cancelling).await?))
    }

    async fn answer(&self, request: Request<v1::AnswerTaskRequest>) -> Result<Response<v1::Task>, Status> {
        let bound = deadline::of(request.metadata())?;
        let answering = async {
            let asked = request.get_ref();
            let Named { caller, scope } = Named::of(&self.runtime, &request, asked.scope.as_ref()).await?;
            // Messages of the parser are fixed phrases and a position.
            let body: &RawValue = serde_json::from_str(&asked.answers)
                .map_err(|error| status::invalid(format!("`answers` is not JSON: {error}")))?;
            let answered = self.runtime.answer_task(&caller, &scope, &asked.task_id, &asked.input_id, body).await;
            answered.map_err(status::of)
        };
        Ok(self.detailed(deadline::within(bound, answering).await?))
    }

    async fn redeliver(
        &self,
        request: Request<v1::RedeliverTaskRequest>,
    ) -> Result<Response<v1::RedeliverTaskResponse>, Status> {
        let bound = deadline::of(request.metadata())?;
        let redelivering = async {
            let caller = identity::caller(&self.runtime, request.metadata(), &request_id(&request)).await?;
            self.runtime.redeliver(&caller, &request.get_ref().task_id, None).await.map_err(status::of)
        };
        if !deadline::within(bound, redelivering).await? {
            return Err(status::of(VerbError::new(Code::Conflict, "nothing was given up for this task")));
        }
        Ok(Response::new(v1::RedeliverTaskResponse {}))
    }

    async fn watch_task(&self, request: Request<v1::WatchTaskRequest>) -> Result<Response<Changes>, Status> {
        let bound = deadline::of(request.metadata())?;
        let opening = async {
            let asked = request.get_ref();
            let Named { caller, scope } = Named::of(&self.runtime, &request, asked.scope.as_ref()).await?;
            if asked.after < 0 {
                return Err(status::invalid("`after` must be the number of a change, or 0"));
            }
            self.runtime.follow_task(&caller, &scope, &asked.task_id, asked.after).await.map_err(status::of)
        };
        let followed = deadline::within(bound, opening).await?;
        Ok(Response::new(follow::changes(followed, self.stopped.clone())))
    }

    async fn watch(&self, request: Request<Streaming<v1::WatchTasks>>) -> Result<Response<Events>, Status> {
        let id = request_id(&request);
        let caller = identity::caller(&self.runtime, request.metadata(), &id).await?;
        let mut asked = request.into_inner();
        let first = deadline::within(Some(self.patience), asked.message()).await?;
        let Some(v1::WatchTasks { request: Some(Asked::Subscribe(subscribe)) }) = first else {
            return Err(status::invalid("the first message must be `subscribe`"));
        };
        let window = usize::try_from(subscribe.max_in_flight).unwrap_or(usize::MAX);
        let watch = self.runtime.watch_tasks(&caller, said(&subscribe.user_id), window).await.map_err(status::of)?;
        Ok(Response::new(watching::events(watch, asked, self.stopped.clone(), id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_fifty_tasks_unless_it_is_asked_for_others_up_to_a_hundred() {
        // Contract 2.3, limit.
        for (asked, given) in [(0, Some(50)), (1, Some(1)), (100, Some(100)), (101, None), (u32::MAX, None)] {
            assert_eq!(limit("limit", asked).ok(), given, "{asked}");
        }
        assert!(limit("page_size", 101).unwrap_err().message().contains("page_size"));
    }
}
