//! A webhook as a receiver; the documentation of the crate says what its answers mean.

use std::fmt;

use caribou_core::config::Secret;
use caribou_core::notification::Sink;
use caribou_ports::BoxFuture;
use caribou_ports::event_sink::{ChainEnded, EventSink, Launched, Run, Told};
use reqwest::{ClientBuilder, Method, StatusCode};
use serde::Deserialize;
use url::Url;

use crate::look_up::LookUpUrl;
use crate::payload::{end_payload, payload};
use crate::receiver::{NoAnswer, Receiver, read, said};
use crate::signature::WebhookSecret;

/// Characters of the name of a run, as contract 6.3 stores it.
const MAX_RUN_ID_CHARS: usize = 64;

/// A signed webhook.
#[derive(Debug)]
pub struct Webhook {
    receiver: Receiver,
    url: WebhookUrl,
    look_up: Option<LookUpUrl>,
}

/// Where events are sent. May hold a login, which is sent as basic authentication, and is never printed (invariant O3).
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl(Url);

/// It is no URL that events can be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the URL of a webhook is http or https, and names a host")]
pub struct NotAWebhookUrl;

impl WebhookUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// It is not http or https.
    pub fn parse(text: Secret) -> Result<Self, NotAWebhookUrl> {
        let is_http = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        Url::parse(text.expose()).ok().filter(is_http).map(Self).ok_or(NotAWebhookUrl)
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// What a webhook is made of.
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    /// Where events are sent.
    pub url: WebhookUrl,
    /// Each signs; none = nothing is signed.
    pub secrets: Vec<WebhookSecret>,
    /// Where runs are looked up; `None` = a run that was launched counts as delivered.
    pub look_up: Option<LookUpUrl>,
}

/// There can be no webhook: its HTTP client could not be made.
#[derive(Debug, thiserror::Error)]
#[error("there is no HTTP client for the webhook: {0}")]
pub struct NoWebhook(#[from] reqwest::Error);

impl Webhook {
    /// A webhook whose client trusts whom `builder` trusts, and goes through its proxy.
    ///
    /// # Errors
    /// There is no HTTP client.
    pub fn new(options: WebhookOptions, builder: ClientBuilder) -> Result<Self, NoWebhook> {
        let WebhookOptions { url, secrets, look_up } = options;
        Ok(Self { receiver: Receiver::new(builder, secrets)?, url, look_up })
    }

    async fn told(&self, told: &Told) -> Launched {
        let id = told.key.to_string();
        let answer = match self.receiver.send(Method::POST, self.url.0.clone(), &id, payload(told)).await {
            Ok(answer) => answer,
            Err(error) => return Launched::Unclear(error.to_string()),
        };
        let status = answer.status();
        match status.as_u16() {
            202 if self.look_up.is_some() => launched(read(answer).await),
            200..=299 => Launched::Delivered,
            409 => Launched::Busy,
            404 | 410 => Launched::Gone(format!("{}: there is no such thread", said(status))),
            400 | 401 | 403 | 422 | 501 => Launched::Gone(format!("{}: the event is refused for good", said(status))),
            408 | 429 | 500..=599 => Launched::Unclear(said(status)),
            300..=399 => Launched::Refused(format!("{}: redirects are not followed", said(status))),
            _ => Launched::Refused(said(status)),
        }
    }

    /// There is no run to launch for it, so every 2xx has taken it.
    async fn end_told(&self, ended: &ChainEnded) -> Launched {
        let body = end_payload(ended);
        let answer = match self.receiver.send(Method::POST, self.url.0.clone(), &ended.key, body).await {
            Ok(answer) => answer,
            Err(error) => return Launched::Unclear(error.to_string()),
        };
        let status = answer.status();
        match status.as_u16() {
            200..=299 => Launched::Delivered,
            400 | 401 | 403 | 404 | 410 | 422 | 501 => {
                Launched::Gone(format!("{}: it is refused for good", said(status)))
            }
            _ => Launched::Unclear(said(status)),
        }
    }

    async fn looked_up(&self, told: &Told, run_id: &str) -> Run {
        let Some(look_up) = &self.look_up else {
            return Run::Error("no URL is configured to look runs up".to_owned());
        };
        let Some(url) = look_up.of(&told.scope, run_id) else {
            return Run::Error("the names of the run and its thread cannot stand in a URL".to_owned());
        };
        let answer = match self.receiver.send(Method::GET, url, &told.key.to_string(), Vec::new()).await {
            Ok(answer) => answer,
            Err(error) => return Run::Error(error.to_string()),
        };
        match answer.status() {
            StatusCode::NOT_FOUND | StatusCode::GONE => Run::NotFound,
            StatusCode::OK => read(answer).await.map_or_else(|error| Run::Error(error.to_string()), |body| run(&body)),
            status => Run::Error(said(status)),
        }
    }
}

#[derive(Deserialize)]
struct Accepted {
    run_id: Option<String>,
}

#[derive(Deserialize)]
struct RunStatus {
    status: String,
}

/// What a receiver that answered 202 says: the run it launched, or nothing.
fn launched(body: Result<Vec<u8>, NoAnswer>) -> Launched {
    let body = match body {
        Ok(body) => body,
        Err(NoAnswer::TooLarge) => return Launched::Refused(NoAnswer::TooLarge.to_string()),
        // It may have launched a run; told again, it names it.
        Err(error) => return Launched::Unclear(error.to_string()),
    };
    if body.iter().all(u8::is_ascii_whitespace) {
        return Launched::Delivered;
    }
    match serde_json::from_slice(&body) {
        Ok(Accepted { run_id: None }) => Launched::Delivered,
        Ok(Accepted { run_id: Some(run_id) }) if (1..=MAX_RUN_ID_CHARS).contains(&run_id.chars().count()) => {
            Launched::Run { run_id }
        }
        _ => Launched::Refused(format!(
            "the receiver answered 202, but not with a `run_id` of 1 to {MAX_RUN_ID_CHARS} characters"
        )),
    }
}

/// What a receiver says of a run.
fn run(body: &[u8]) -> Run {
    let Ok(RunStatus { status }) = serde_json::from_slice(body) else {
        return Run::Error("the receiver answered without a `status` of the run".to_owned());
    };
    match status.as_str() {
        "pending" | "queued" | "running" => Run::Running,
        "success" | "succeeded" | "completed" => Run::Succeeded,
        word @ ("error" | "failed" | "timeout" | "interrupted" | "cancelled") => {
            Run::Failed(format!("the run ended as `{word}`"))
        }
        _ => Run::Error("the receiver answered with a `status` of the run that is not known".to_owned()),
    }
}

impl EventSink for Webhook {
    fn sink(&self) -> Sink {
        Sink::Webhook
    }

    fn launch<'a>(&'a self, told: &'a Told) -> BoxFuture<'a, Launched> {
        Box::pin(self.told(told))
    }

    fn look_up<'a>(&'a self, told: &'a Told, run_id: &'a str) -> BoxFuture<'a, Run> {
        Box::pin(self.looked_up(told, run_id))
    }

    fn chain_ended<'a>(&'a self, ended: &'a ChainEnded) -> BoxFuture<'a, Launched> {
        Box::pin(self.end_told(ended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_for_a_run_means_one_thing() {
        // Contract 6.9, dispatched.
        let said = |word: &str| run(format!(r#"{{"status":"{word}"}}"#).as_bytes());
        for word in ["pending", "queued", "running"] {
            assert_eq!(said(word), Run::Running, "{word}");
        }
        for word in ["success", "succeeded", "completed"] {
            assert_eq!(said(word), Run::Succeeded, "{word}");
        }
        for word in ["error", "failed", "timeout", "interrupted", "cancelled"] {
            assert!(matches!(said(word), Run::Failed(_)), "{word}");
        }
        for body in [r#"{"status":"odd"}"#, r#"{"status":1}"#, "{}", "", "[]"] {
            assert!(matches!(run(body.as_bytes()), Run::Error(_)), "{body}");
        }
    }

    #[test]
    fn an_accepted_event_names_its_run_or_is_delivered() {
        let said = |body: &str| launched(Ok(body.into()));
        assert_eq!(said(r#"{"run_id":"r1"}"#), Launched::Run { run_id: "r1".to_owned() });
        for body in ["", "{}", r#"{"run_id":null}"#] {
            assert_eq!(said(body), Launched::Delivered, "{body}");
        }
        let long = format!(r#"{{"run_id":"{}"}}"#, "x".repeat(MAX_RUN_ID_CHARS + 1));
        for body in [r#"{"run_id":""}"#, r#"{"run_id":7}"#, "no", &long] {
            assert!(matches!(said(body), Launched::Refused(_)), "{body}");
        }
        assert!(matches!(launched(Err(NoAnswer::Broken)), Launched::Unclear(_)));
    }

    #[test]
    fn an_address_is_never_printed() {
        // Invariant O3.
        let url = |text: &str| WebhookUrl::parse(Secret::new(text));
        let options =
            WebhookOptions { url: url("http://ann:hunter2@agent/").unwrap(), secrets: Vec::new(), look_up: None };
        let webhook = Webhook::new(options, reqwest::Client::builder()).unwrap();
        assert!(!format!("{webhook:?}").contains("hunter2"), "{webhook:?}");
        for text in ["", "agent", "ftp://hunter2@agent/", "data:hunter2"] {
            assert_eq!(url(text), Err(NotAWebhookUrl), "{text}");
        }
    }
}
