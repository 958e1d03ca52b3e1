//! One request of either era, ready to be done: everything it needs, owned, so that it can outlive its connection.

use std::sync::Arc;

use axum::http::HeaderMap;
use caribou_core::era::Era;
use caribou_core::ids::{RequestId, Scope};
use caribou_ports::mcp::relayed::{CALLER, LOG_LEVEL};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::asking::Desk;
use crate::dress::dressed;
use crate::fault::Fault;
use crate::meta::{Level, RequestMeta};
use crate::methods;
use crate::notices::{Notices, Wanted};
use crate::router::{Asked, Endpoint};
use crate::work_span::WorkSpan;

/// Names the thread that a request belongs to.
const THREAD: &str = "x-caribou-thread";

/// Arguments that are mirrored in headers.
const MIRRORED: &str = "mcp-param-";

/// Who asks, in which era, for whom.
pub(crate) struct Client {
    pub(crate) asked: Asked,
    pub(crate) era: Era,
    pub(crate) scope: Scope,
    /// Which log messages it wants with this request.
    pub(crate) wanted: Wanted,
    /// Its session, in the legacy era.
    pub(crate) session: Option<String>,
    /// Whether the request named its thread by itself.
    pub(crate) names_thread: bool,
    /// Whether it knows what to do with a task: in the modern era it declares so with the request, in the legacy one its
    /// revision has them.
    pub(crate) takes_tasks: bool,
}

/// One request.
pub(crate) struct Work {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) client: Client,
    pub(crate) method: String,
    pub(crate) id: Box<RawValue>,
    pub(crate) params: Option<Box<RawValue>>,
    pub(crate) meta: RequestMeta,
    /// The headers that mirror arguments, as they came.
    pub(crate) mirrored: HeaderMap,
    span: WorkSpan,
}

impl Asked {
    /// For whom a request is made: its thread is what it names, else its client's session, else the caller's default.
    pub(crate) fn scope(
        &self,
        headers: &HeaderMap,
        of_meta: Option<&str>,
        session: Option<&str>,
    ) -> Result<Scope, Fault> {
        let of_header = match headers.get(THREAD) {
            Some(thread) => {
                let thread = thread.to_str();
                Some(thread.map_err(|_| Fault::invalid_params("the header `X-Caribou-Thread` is no text"))?)
            }
            None => None,
        };
        Ok(self.caller.scope(None, of_header.or(of_meta).or(session))?)
    }
}

/// Whether a request names its thread, by a header or in its `_meta`.
pub(crate) fn names_thread(headers: &HeaderMap, meta: &RequestMeta) -> bool {
    headers.contains_key(THREAD) || meta.thread.is_some()
}

impl Work {
    /// The request of this method, id and parameters.
    pub(crate) fn new(
        endpoint: Arc<Endpoint>,
        client: Client,
        headers: &HeaderMap,
        (method, id, params): (&str, &RawValue, Option<&RawValue>),
        mut meta: RequestMeta,
    ) -> Self {
        let request_id = client.asked.request_id.as_str();
        let span = WorkSpan::begin((client.era, headers), (method, id, params), &meta, request_id);
        // Servers of the modern era tell nothing that was not asked for with the request.
        let level = match client.wanted {
            Wanted::No => None,
            Wanted::All => Some(Level::Debug),
            Wanted::From(level) => Some(level),
        };
        let level = level.and_then(|level| to_raw_value(level.as_str()).ok());
        meta.passed.extend(level.map(|level| (LOG_LEVEL.to_owned(), level)));
        let is_modern = client.era == Era::Modern;
        let caller = json!({ "principal": &*client.asked.caller.principal.id, "modern": is_modern });
        meta.passed.extend(to_raw_value(&caller).ok().map(|caller| (CALLER.to_owned(), caller)));
        let mirrored = headers.iter().filter(|(name, _)| name.as_str().starts_with(MIRRORED));
        Self {
            endpoint,
            client,
            method: method.to_owned(),
            id: id.to_owned(),
            params: params.map(ToOwned::to_owned),
            meta,
            mirrored: mirrored.map(|(name, value)| (name.clone(), value.clone())).collect(),
            span,
        }
    }

    /// The end of the client's stream, and the way there.
    pub(crate) fn notices(&self) -> (Notices, tokio::sync::mpsc::Receiver<String>) {
        Notices::new(self.meta.progress_token.as_deref(), self.client.wanted)
    }

    /// Where the client is asked; `None` = it is of the modern era, which is asked by results.
    pub(crate) fn desk<'d>(&'d self, notices: &'d Notices) -> Option<Desk<'d>> {
        let session = self.client.session.as_deref()?;
        let boot = self.endpoint.runtime.boot().as_str();
        Some(Desk { answers: &self.endpoint.answers, boot, session, notices })
    }

    /// The name of the request in logs and audit rows.
    pub(crate) fn request_id(&self) -> RequestId {
        self.client.asked.request_id.clone()
    }

    /// Does what is asked for; the result, as the client may read it.
    pub(crate) async fn run(mut self, notices: Notices) -> Result<String, Fault> {
        let span = self.span.clone();
        let done = span.within(Box::pin(methods::run(&mut self, &notices))).await;
        span.ended(&done);
        done.map(|result| dressed(self.client.era, &self.method, &result))
    }
}
