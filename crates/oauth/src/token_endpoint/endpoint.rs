//! One request to a token endpoint, and how it came out.
//!
//! Owns the difference between a request that was surely not sent and one whose answer is lost: the form is handed
//! over as a stream, which the client asks for only once it has a connection, and which is withdrawn when none came
//! about in time, or when whoever presents a refresh token lost the right to it meanwhile. Each wait is bounded by
//! `client::OPERATION`; whoever waits for the whole sets a bound of its own.

use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use caribou_core::config::{OAuth, Secret};
use caribou_core::masker::Masker;
use caribou_core::oauth::{self, Given, NotGiven, Refusal};
use caribou_egress::{Guard, WayOut, refusal_in};
use caribou_ports::BoxFuture;
use caribou_ports::token_endpoint::{StillHeld, TokenAnswer, TokenEndpoint, TokenRequest, TokenRequestError};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use reqwest::{Body, Client, Response, StatusCode, Url};
use tokio::sync::oneshot;

use super::client::{OPERATION, client, describe};
use super::patience::patiently;
use super::{body, masking};

/// The largest answer: a token, even one with many claims, is a few kilobytes.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Asks token endpoints over HTTP.
pub struct TokenEndpoints {
    open: Client,
    guarded: Client,
    guard: Guard,
}

impl TokenEndpoints {
    /// Those of the configuration file wherever they are, those of personal connections where `guard` lets them. Both
    /// trust the authorities of `way_out`; only the former go through its proxies.
    ///
    /// # Errors
    /// The HTTP clients cannot be set up.
    pub fn new(guard: Guard, way_out: &WayOut) -> io::Result<Arc<Self>> {
        // The HTTP client panics without a provider; an error means that the program has installed one itself.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let open = client(way_out, None).map_err(io::Error::other)?;
        let guarded = client(way_out, Some(&guard)).map_err(io::Error::other)?;
        Ok(Arc::new(Self { open, guarded, guard }))
    }
}

impl TokenEndpoint for TokenEndpoints {
    fn request(&self, request: TokenRequest) -> BoxFuture<'static, Result<TokenAnswer, TokenRequestError>> {
        let (client, guard) =
            if request.guarded { (self.guarded.clone(), Some(self.guard.clone())) } else { (self.open.clone(), None) };
        Box::pin(async move {
            let form = oauth::form(&request.oauth, request.refresh_token.as_ref()).map_err(not_sent)?;
            let url = Url::parse(&request.oauth.token_url).map_err(|_| not_sent("`oauth.token_url` is no URL"))?;
            if let Some(guard) = guard {
                guard.check(&url).map_err(not_sent)?;
            }
            let basic = basic(&request.oauth);
            let masker = masking::of_request(&request.oauth, &form, basic.as_ref());
            let response = send(&client, url, &form, basic, request.still_held.clone()).await?;
            read(response, &request, &masker).await
        })
    }
}

fn not_sent(why: impl ToString) -> TokenRequestError {
    TokenRequestError::NotSent(why.to_string())
}

fn unknown(why: &str) -> TokenRequestError {
    TokenRequestError::Unknown(format!("the token endpoint {why}; whether it gave a token is not known"))
}

fn unusable(why: impl ToString) -> TokenRequestError {
    TokenRequestError::Unusable { message: why.to_string(), refresh_token: None }
}

/// The credentials of a client that authenticates by HTTP Basic: id and secret are encoded as in a form before they are
/// joined (RFC 6749 §2.3.1).
fn basic(oauth: &OAuth) -> Option<Secret> {
    let (id, secret) = oauth::basic(oauth)?;
    let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    Some(Secret::new(BASE64_STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret.expose())))))
}

/// Nobody has asked for the form yet.
const HELD: u8 = 0;
/// It is on its way.
const TAKEN: u8 = 1;
/// It is not handed out any more.
const WITHDRAWN: u8 = 2;
/// It was asked for too late.
const REFUSED: u8 = 3;

/// Sends the form, and waits for the head of the answer.
async fn send(
    client: &Client,
    url: Url,
    form: &[(String, Secret)],
    basic: Option<Secret>,
    still_held: Option<StillHeld>,
) -> Result<Response, TokenRequestError> {
    let text = encoded(form);
    let hand = Arc::new(AtomicU8::new(HELD));
    let (taken, connected) = oneshot::channel();
    let mut request = client
        .post(url)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(CONTENT_LENGTH, text.len())
        .header(ACCEPT, "application/json")
        .body(Body::wrap_stream(handed_over(text, hand.clone(), taken, still_held)));
    // Base64 is visible ASCII: it can always stand in a header.
    let basic = basic.and_then(|basic| HeaderValue::from_str(&format!("Basic {}", basic.expose())).ok());
    if let Some(mut basic) = basic {
        basic.set_sensitive(true);
        request = request.header(AUTHORIZATION, basic);
    }
    let mut answer = pin!(request.send());
    let connecting = async {
        tokio::select! {
            answer = &mut answer => Some(answer),
            () = async { if connected.await.is_err() { pending().await } } => None,
        }
    };
    let answer = match patiently(OPERATION, connecting).await {
        Some(Some(answer)) => answer,
        Some(None) => match patiently(OPERATION, answer).await {
            Some(answer) => answer,
            None => return Err(unknown("did not answer within 15 s")),
        },
        None if withdraw(&hand) => {
            return Err(not_sent("the token endpoint accepted no connection within 15 s; nothing was sent"));
        }
        None => return Err(unknown("did not answer within 15 s")),
    };
    answer.map_err(|error| match refusal_in(&error) {
        Some(refused) => not_sent(refused),
        None if hand.load(Ordering::Acquire) == REFUSED => {
            not_sent("the right to present the refresh token ended before it was sent; nothing was sent")
        }
        None if withdraw(&hand) => {
            not_sent(format!("the token endpoint cannot be reached: {}; nothing was sent", describe(&error)))
        }
        None => unknown(&format!("broke the connection off before its answer: {}", describe(&error))),
    })
}

fn encoded(form: &[(String, Secret)]) -> String {
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    text.extend_pairs(form.iter().map(|(name, value)| (name, value.expose())));
    text.finish()
}

/// The form, for whoever asks first: the connection, or the one who gives up.
fn handed_over(
    form: String,
    hand: Arc<AtomicU8>,
    taken: oneshot::Sender<()>,
    still_held: Option<StillHeld>,
) -> impl futures::Stream<Item = Result<String, io::Error>> + Send + 'static {
    futures::stream::once(async move {
        // The last moment: a process that stood still since it asked for the right may have lost it (R1).
        let next = if still_held.is_none_or(|is_held| is_held()) { TAKEN } else { REFUSED };
        match hand.compare_exchange(HELD, next, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) if next == TAKEN => {
                let _ = taken.send(());
                Ok(form)
            }
            _ => Err(io::Error::other("the request was given up")),
        }
    })
}

/// Takes the form back. Whether nobody had it.
fn withdraw(hand: &AtomicU8) -> bool {
    hand.compare_exchange(HELD, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// Reads the answer to its end.
async fn read(response: Response, request: &TokenRequest, masker: &Masker) -> Result<TokenAnswer, TokenRequestError> {
    let status = response.status();
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.to_owned();
    let body = whole(response).await;
    if !status.is_success() {
        // The status is an answer of its own: whatever became of the rest, no token was given.
        let members = body.ok().and_then(|body| body::members(&content_type, &body).ok()).unwrap_or_default();
        let masker = masking::with_answer(masker, &request.oauth, &members);
        return Err(refused(Some(status), &Refusal::read(&members), &masker));
    }
    let members = match body {
        Ok(body) => body::members(&content_type, &body).map_err(unusable)?,
        Err(NotWhole::TooLarge) => {
            return Err(unusable(format!("the answer of the token endpoint is larger than {MAX_ANSWER_BYTES} bytes")));
        }
        Err(NotWhole::Broken(why)) => return Err(unknown(&why)),
    };
    match oauth::answer::read(&request.oauth, &members) {
        Ok(Given { header, expires_in, refresh_token }) => Ok(TokenAnswer { header, expires_in, refresh_token }),
        Err(NotGiven::Refused(refusal)) => {
            Err(refused(None, &refusal, &masking::with_answer(masker, &request.oauth, &members)))
        }
        Err(NotGiven::Unusable(message)) => {
            let refresh_token = oauth::answer::successor(&request.oauth, &members);
            Err(TokenRequestError::Unusable { message, refresh_token })
        }
    }
}

/// Why the body of an answer is not there.
enum NotWhole {
    TooLarge,
    Broken(String),
}

async fn whole(mut response: Response) -> Result<Vec<u8>, NotWhole> {
    let mut body = Vec::new();
    loop {
        match patiently(OPERATION, response.chunk()).await {
            Some(Ok(None)) => return Ok(body),
            Some(Ok(Some(chunk))) if body.len() + chunk.len() > MAX_ANSWER_BYTES => return Err(NotWhole::TooLarge),
            Some(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
            Some(Err(error)) => return Err(NotWhole::Broken(format!("broke its answer off: {}", describe(&error)))),
            None => return Err(NotWhole::Broken("stood still amid its answer for 15 s".to_owned())),
        }
    }
}

/// The error of an answer that refuses; `status` where that says so.
fn refused(status: Option<StatusCode>, refusal: &Refusal, masker: &Masker) -> TokenRequestError {
    let mut message = match status {
        Some(status) if status.is_redirection() => {
            format!(
                "the token endpoint redirects (HTTP {}), which is not followed; write its final address as `oauth.token_url`",
                status.as_u16()
            )
        }
        Some(status) => format!("the token endpoint answered HTTP {}", status.as_u16()),
        None => "the token endpoint answered with an error".to_owned(),
    };
    for text in [&refusal.error, &refusal.description].into_iter().flatten() {
        message.push_str(": ");
        message.push_str(&masking::shown(masker, text));
    }
    TokenRequestError::Refused { error: refusal.code().map(str::to_owned), message }
}
