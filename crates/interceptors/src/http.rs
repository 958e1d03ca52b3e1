//! An interceptor over HTTP: JSON to `<address>/before` and `<address>/after`, as the documentation of the crate shows.
//!
//! Every JSON value of the call and its result travels as it is, byte for byte (invariant W1). An answer is read up to
//! its bound and no further.

use std::time::Duration;

use caribou_core::bounds::MAX_MESSAGE_BYTES;
use caribou_core::config::Secret;
use caribou_ports::BoxFuture;
use caribou_ports::interceptor::{Before, InterceptedCall, InterceptorHeader};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, ClientBuilder, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use serde_json::value::RawValue;
use url::Url;

use crate::callout::{Trouble, Wire};

/// Idle connections kept for each interceptor; it stands before every call, so some are always in use.
const IDLE_CONNECTIONS: usize = 32;

/// An idle connection is closed before a load balancer would.
const IDLE: Duration = Duration::from_secs(50);

/// A client for all HTTP interceptors; whom it trusts and which proxy it asks is set in `builder`.
pub(crate) fn client(builder: ClientBuilder) -> Result<Client, reqwest::Error> {
    // The client panics without a provider; an error means that the program has installed one itself.
    let _ = rustls::crypto::ring::default_provider().install_default();
    builder
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .pool_idle_timeout(IDLE)
        .build()
}

pub(crate) struct Http {
    client: Client,
    before: Url,
    after: Url,
}

impl Http {
    /// The service below `address`.
    pub(crate) fn to(address: &str, client: Client) -> Result<Self, String> {
        let below = |step: &str| {
            let mut url = Url::parse(address).ok()?;
            url.path_segments_mut().ok()?.pop_if_empty().push(step);
            Some(url)
        };
        let unusable = || "its address is not http://host/path".to_owned();
        Ok(Self { client, before: below("before").ok_or_else(unusable)?, after: below("after").ok_or_else(unusable)? })
    }

    async fn ask(&self, url: &Url, body: &impl Serialize) -> Result<Vec<u8>, Trouble> {
        // Strings, maps and raw JSON: writing them does not fail.
        let body = serde_json::to_vec(body).unwrap_or_default();
        let request = self.client.post(url.clone()).header(CONTENT_TYPE, "application/json").body(body);
        let mut answer = request.send().await.map_err(|error| trouble(&error))?;
        if answer.status() != StatusCode::OK {
            return Err(Trouble::Status(format!("HTTP status {}", answer.status().as_u16())));
        }
        let mut read = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| trouble(&error))? {
            if read.len() + chunk.len() > MAX_MESSAGE_BYTES {
                return Err(Trouble::TooLarge(MAX_MESSAGE_BYTES));
            }
            read.extend_from_slice(&chunk);
        }
        Ok(read)
    }
}

fn trouble(error: &reqwest::Error) -> Trouble {
    if error.is_connect() { Trouble::Unconnected } else { Trouble::Broken }
}

#[derive(Serialize)]
struct Asked<'a> {
    call: Call<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Call<'a> {
    server: &'a str,
    tool: &'a str,
    visible_tool: &'a str,
    user_id: &'a str,
    thread_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
    headers: Vec<Shown<'a>>,
    secrets: Map<String, serde_json::Value>,
}

#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    value: &'a str,
}

impl<'a> Call<'a> {
    fn of(call: &'a InterceptedCall) -> Self {
        let secret = |(key, value): &(String, Secret)| (key.clone(), value.expose().into());
        Self {
            server: call.server.as_str(),
            tool: &call.raw_name,
            visible_tool: &call.visible_name,
            user_id: call.scope.user.as_str(),
            thread_id: call.scope.thread.as_str(),
            run_id: call.run_id.as_deref(),
            tool_call_id: call.tool_call_id.as_deref(),
            request_id: call.request_id.as_str(),
            arguments: call.arguments.as_deref(),
            headers: call.headers.iter().map(|(name, value)| Shown { name, value: value.expose() }).collect(),
            secrets: call.secrets.iter().map(secret).collect(),
        }
    }
}

#[derive(Deserialize)]
struct Decision {
    proceed: Option<Proceed>,
    answer: Option<Box<RawValue>>,
    deny: Option<String>,
}

#[derive(Deserialize)]
struct Proceed {
    arguments: Option<Box<RawValue>>,
    #[serde(default)]
    headers: Vec<Header>,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    value: String,
    #[serde(default)]
    per_call: bool,
}

#[derive(Deserialize)]
struct After {
    result: Option<Box<RawValue>>,
}

impl Wire for Http {
    fn before<'a>(&'a self, call: &'a InterceptedCall) -> BoxFuture<'a, Result<Before, Trouble>> {
        Box::pin(async move {
            let answer = self.ask(&self.before, &Asked { call: Call::of(call), result: None }).await?;
            let decision: Decision = serde_json::from_slice(&answer)
                .map_err(|_| Trouble::Malformed("no JSON object of proceed, answer or deny"))?;
            match (decision.proceed, decision.answer, decision.deny) {
                (Some(Proceed { arguments, headers }), None, None) => {
                    let header = |Header { name, value, per_call }| InterceptorHeader {
                        name,
                        value: Secret::new(value),
                        per_call,
                    };
                    Ok(Before::Proceed { arguments, headers: headers.into_iter().map(header).collect() })
                }
                (None, Some(answer), None) => Ok(Before::Answer(answer)),
                (None, None, Some(text)) => Ok(Before::Deny(text)),
                (None, None, None) => Err(Trouble::Malformed("it decides nothing")),
                _ => Err(Trouble::Malformed("it decides twice")),
            }
        })
    }

    fn after<'a>(
        &'a self,
        call: &'a InterceptedCall,
        result: &'a RawValue,
    ) -> BoxFuture<'a, Result<Option<Box<RawValue>>, Trouble>> {
        Box::pin(async move {
            let answer = self.ask(&self.after, &Asked { call: Call::of(call), result: Some(result) }).await?;
            let after: After =
                serde_json::from_slice(&answer).map_err(|_| Trouble::Malformed("no JSON object with a result"))?;
            Ok(after.result)
        })
    }
}
