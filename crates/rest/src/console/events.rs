//! GET /api/console/events

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use caribou_core::failure::Code;
use futures::{Stream, stream};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::files::demand_console;
use super::section::Section;
use super::watch::Listener;
use crate::identity::Identified;
use crate::openapi::problems;
use crate::openapi::{FaultProblem, Meanings};
use crate::problem::Problem;
use crate::router::Replica;

/// How long one stream lasts. A page then asks for another one and is told apart anew: a credential that was revoked
/// does not listen for ever.
const STREAM: Duration = Duration::from_secs(600);

/// Which sections.
#[derive(Serialize)]
struct Sections {
    sections: Vec<Section>,
}

/// Failures of the stream.
struct StreamProblems;

impl utoipa::IntoResponses for StreamProblems {
    fn responses() -> Meanings {
        problems(&[
            ("404", "`not_found`: the console is switched off"),
            ("503", "`busy`: too many pages listen to this replica; read anew now and then"),
        ])
    }
}

/// Tells the web console what to read anew.
///
/// An event `begin` names the sections that the caller is told about, and says that whatever is read from now on is
/// followed: admins `replicas`, `servers`, `sessions`, `tasks`, `chains`, `audit`, `configuration`, others `servers`.
/// Then, at most once a second, an event `changed` names those that changed. The stream ends after ten minutes, and when
/// the replica stops; then another one is to be asked for.
#[utoipa::path(
    get,
    path = "/api/console/events",
    tag = "console",
    responses(
        (status = 200, description = "The events", content(
            (String = "text/event-stream", example = "event: changed\ndata: {\"sections\":[\"sessions\",\"audit\"]}\n\n"),
        )),
        StreamProblems,
        FaultProblem,
    ),
)]
pub(crate) async fn console_events(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
) -> Result<Response, Problem> {
    demand_console(&replica)?;
    let told: Vec<_> = match caller.principal.administers() {
        Ok(()) => Section::ALL.into(),
        Err(_) => Section::ALL.into_iter().filter(|section| section.is_everybodys()).collect(),
    };
    let listener = replica.watch.listen(&replica.runtime).ok_or_else(|| {
        let detail = "too many pages listen to this replica; close some, or read anew now and then";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, Code::Busy, detail)
    })?;
    let silence = KeepAlive::new().interval(replica.options.keep_alive);
    let events = Sse::new(events(listener, told, replica.options.closing.clone())).keep_alive(silence);
    Ok(([("x-accel-buffering", "no")], events).into_response())
}

/// What a stream is between two events.
struct Open {
    listener: Listener,
    told: Vec<Section>,
    closing: CancellationToken,
    until: Instant,
    has_begun: bool,
}

fn events(
    listener: Listener,
    told: Vec<Section>,
    closing: CancellationToken,
) -> impl Stream<Item = Result<Event, axum::Error>> {
    let open = Open { listener, told, closing, until: Instant::now() + STREAM, has_begun: false };
    stream::unfold(open, |mut open| async move {
        let (name, sections) = open.next().await?;
        Some((Event::default().event(name).json_data(Sections { sections }), open))
    })
}

impl Open {
    /// The next event; `None` = the stream ends.
    async fn next(&mut self) -> Option<(&'static str, Vec<Section>)> {
        loop {
            let changed = tokio::select! {
                changed = timeout_at(self.until, self.listener.next()) => changed.ok()??,
                () = self.closing.cancelled() => return None,
            };
            if !std::mem::replace(&mut self.has_begun, true) {
                return Some(("begin", self.told.clone()));
            }
            let changed: Vec<_> = changed.into_iter().filter(|section| self.told.contains(section)).collect();
            if !changed.is_empty() {
                return Some(("changed", changed));
            }
        }
    }
}
