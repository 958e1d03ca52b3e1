//! Interceptors: code of the operator around every call (contract 8.6, architecture.md §2 and §10).

use std::sync::Arc;

use caribou_core::config::{InterceptorEntry, Secret};
use caribou_core::ids::{RequestId, Scope, ServerName};
use serde_json::value::RawValue;

use crate::BoxFuture;

/// Makes interceptors out of entries of `mcpInterceptors`.
pub trait Interceptors: Send + Sync + 'static {
    /// One instance for one enabled server. `Ok(None)` = the entry wants nothing to do with this server. The text of
    /// an error says what is wrong with the entry; the others go on (contract 8.6).
    fn build(&self, entry: &InterceptorEntry, server: &ServerName) -> Result<Option<Arc<dyn Interceptor>>, String>;
}

/// One interceptor of one server.
pub trait Interceptor: Send + Sync + 'static {
    /// Asked before the call is made. Bounded by the implementation's own deadline.
    fn before<'a>(&'a self, call: &'a InterceptedCall) -> BoxFuture<'a, Result<Before, InterceptorError>>;

    /// Shown the result on its way back; may replace it. Bounded by the implementation's own deadline.
    fn after<'a>(
        &'a self,
        call: &'a InterceptedCall,
        result: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, InterceptorError>>;
}

/// What an interceptor is told.
#[derive(Clone)]
pub struct InterceptedCall {
    /// The server.
    pub server: ServerName,
    /// The server's own name of the tool.
    pub raw_name: Arc<str>,
    /// The name callers see.
    pub visible_name: Arc<str>,
    /// User and thread.
    pub scope: Scope,
    /// The run of an agent, if the caller named one.
    pub run_id: Option<Arc<str>>,
    /// The model's id of the call, if the caller named one.
    pub tool_call_id: Option<Arc<str>>,
    /// Names the request.
    pub request_id: RequestId,
    /// The arguments so far; absent stays absent.
    pub arguments: Option<Box<RawValue>>,
    /// The headers so far, without an access token of ours; empty for stdio.
    pub headers: Vec<(String, Secret)>,
    /// Of the request's secrets, those the entry lists.
    pub secrets: Vec<(String, Secret)>,
}

/// What is to happen with a call.
#[derive(Clone)]
pub enum Before {
    /// It goes on, changed or not.
    Proceed {
        /// Replaces the arguments; `None` leaves them.
        arguments: Option<Box<RawValue>>,
        /// Headers to set.
        headers: Vec<InterceptorHeader>,
    },
    /// This is its `CallToolResult`; nothing is sent.
    Answer(Box<RawValue>),
    /// It may not be made; the text is shown to the caller.
    Deny(String),
}

/// A header that an interceptor sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterceptorHeader {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Secret,
    /// Whether it says nothing about who calls, such as an id of the request. All others count as a credential: calls
    /// share an upstream session only when theirs are equal.
    pub per_call: bool,
}

/// The interceptor could not be asked; the call fails. Names the entry, never a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InterceptorError(pub String);
