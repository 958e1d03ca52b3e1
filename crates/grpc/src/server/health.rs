//! `grpc.health.v1`: serving while the replica is ready, for the whole of it and for each service.
//!
//! Asks the same question as `/readyz`, at each look anew. A watcher hears of a change within [`LOOK_EVERY`]; its
//! stream ends when the replica stops, after it was told so.

use std::pin::Pin;
use std::time::Duration;

use caribou_proto::v1::{admin_service_server, task_service_server, tool_service_server};
use futures::{Stream, stream};
use tokio::sync::watch;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{self, Health};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::options::Readiness;

/// Between two looks on behalf of a watcher: soon beside the time a balancer takes to act on it.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Health as it can be read from a replica.
pub(super) struct Readable {
    pub(super) ready: Readiness,
    pub(super) stopped: watch::Receiver<()>,
}

impl Readable {
    /// `None` when there is no such service.
    fn status_of(&self, service: &str) -> Option<ServingStatus> {
        let ours =
            [tool_service_server::SERVICE_NAME, task_service_server::SERVICE_NAME, admin_service_server::SERVICE_NAME];
        let is_known = ["", health_server::SERVICE_NAME].contains(&service) || ours.contains(&service);
        is_known.then(|| self.now())
    }

    fn now(&self) -> ServingStatus {
        if (self.ready)() { ServingStatus::Serving } else { ServingStatus::NotServing }
    }
}

/// What a watcher was told last, and whether that was the last of all.
struct Watched {
    health: Readable,
    service: String,
    told: Option<ServingStatus>,
    ended: bool,
}

impl Watched {
    async fn next(&mut self) -> Option<ServingStatus> {
        while !self.ended {
            let status = self.health.status_of(&self.service).unwrap_or(ServingStatus::ServiceUnknown);
            if self.told.replace(status) != Some(status) {
                return Some(status);
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                _ = self.health.stopped.changed() => self.ended = true,
            }
        }
        let last = ServingStatus::NotServing;
        (self.told.replace(last) == Some(ServingStatus::Serving)).then_some(last)
    }
}

#[tonic::async_trait]
impl Health for Readable {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        let status = self.status_of(&request.get_ref().service);
        let status = status.ok_or_else(|| Status::not_found("there is no such service"))?;
        Ok(Response::new(HealthCheckResponse { status: status.into() }))
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let health = Self { ready: self.ready.clone(), stopped: self.stopped.clone() };
        let watched = Watched { health, service: request.into_inner().service, told: None, ended: false };
        let told = stream::unfold(watched, |mut watched| async {
            let status = watched.next().await?;
            Some((Ok(HealthCheckResponse { status: status.into() }), watched))
        });
        Ok(Response::new(Box::pin(told)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn watched(service: &str) -> (Watched, Arc<AtomicBool>, watch::Sender<()>) {
        let (stop, stopped) = watch::channel(());
        let is_ready = Arc::new(AtomicBool::new(true));
        let seen = is_ready.clone();
        let health = Readable { ready: Arc::new(move || seen.load(Ordering::Relaxed)), stopped };
        (Watched { health, service: service.to_owned(), told: None, ended: false }, is_ready, stop)
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_hears_each_change_once_and_the_end() {
        let (mut watched, is_ready, stop) = watched(tool_service_server::SERVICE_NAME);
        assert_eq!(watched.next().await, Some(ServingStatus::Serving));
        is_ready.store(false, Ordering::Relaxed);
        assert_eq!(watched.next().await, Some(ServingStatus::NotServing));
        is_ready.store(true, Ordering::Relaxed);
        assert_eq!(watched.next().await, Some(ServingStatus::Serving));
        drop(stop);
        assert_eq!(watched.next().await, Some(ServingStatus::NotServing));
        assert_eq!(watched.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_service_can_be_watched_until_the_end() {
        let (mut watched, _, stop) = watched("no.such.Service");
        assert_eq!(watched.next().await, Some(ServingStatus::ServiceUnknown));
        drop(stop);
        assert_eq!(watched.next().await, None);
    }
}
