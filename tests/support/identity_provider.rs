//! A strict identity provider within the test's own process: families of rotating refresh tokens, each on its own.
//!
//! Each refresh token is good once. One that is shown again revokes its whole family, unless it is the one before and
//! the family has a leeway. The work on a request goes on when whoever asked is gone, as a real one's would. It counts
//! what it must never see: spent tokens, and two requests of one family at a time.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// The largest form that is read.
const MAX_FORM_BYTES: usize = 65_536;

/// How one request of a family is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// It rotates, and closes the connection without a word.
    Drops,
    /// It answers 500, and rotates nothing.
    Breaks,
    /// It rotates and answers after so long.
    Slow(Duration),
}

/// By which rules a family lives.
#[derive(Clone, Copy, Debug, Default)]
pub struct FamilyRules {
    /// Of its access tokens.
    pub life: Duration,
    /// How long it works on a request.
    pub takes: Duration,
    /// For how long the token before is good, too.
    pub leeway: Duration,
}

/// What became of a family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FamilyCounts {
    /// Requests that came.
    pub requests: u64,
    /// Successors given.
    pub rotated: u64,
    /// Spent tokens shown.
    pub reused: u64,
    /// Requests in the work at once, at most.
    pub most_at_once: u64,
}

#[derive(Debug)]
struct Family {
    rules: FamilyRules,
    /// The number of the token that is good; `None` = it is revoked.
    good: Option<u64>,
    rotated_at: Option<Instant>,
    at_once: u64,
    counts: FamilyCounts,
    moods: VecDeque<Mood>,
}

impl Family {
    /// The answer to the token of this number; `None` = refused for good.
    fn shown(&mut self, number: u64) -> Option<u64> {
        let good = self.good?;
        let is_in_leeway = self.rotated_at.is_some_and(|at| at.elapsed() < self.rules.leeway);
        if number == good {
            self.good = Some(good + 1);
            self.rotated_at = Some(Instant::now());
            self.counts.rotated += 1;
        } else if number + 1 != good || !is_in_leeway {
            self.good = None;
            self.counts.reused += 1;
        }
        self.good
    }
}

type Families = Arc<Mutex<BTreeMap<String, Family>>>;

/// A provider that listens on loopback until it is dropped.
#[derive(Debug)]
pub struct IdentityProvider {
    url: String,
    families: Families,
    task: tokio::task::JoinHandle<()>,
}

/// Given back instead of an answer, it closes the connection.
#[derive(Debug)]
struct Dropped;

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("dropped, as planned")
    }
}

impl std::error::Error for Dropped {}

impl IdentityProvider {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let url = format!("http://{}/token", listener.local_addr().expect("a bound listener has an address"));
        let families = Families::default();
        let task = tokio::spawn(accept(listener, families.clone()));
        Self { url, families, task }
    }

    /// Founds a family, and gives the field `oauth` of its first token, with these members changed.
    pub fn found(&self, family: &str, rules: FamilyRules, changed: Value) -> Value {
        let (counts, moods) = Default::default();
        let founded = Family { rules, good: Some(1), rotated_at: None, at_once: 0, counts, moods };
        locked(&self.families).insert(family.to_owned(), founded);
        let mut oauth = json!({
            "token_url": self.url, "client_id": "c", "client_secret": "client-SECRET", "refresh_skew_seconds": 0,
            "grant_type": "refresh_token", "refresh_token": format!("rt-SECRET-{family}-1"),
        });
        let members = oauth.as_object_mut().expect("an object");
        members.extend(changed.as_object().cloned().unwrap_or_default());
        oauth
    }

    /// How the next requests of a family that have no mood yet are answered.
    pub fn then(&self, family: &str, mood: Mood) {
        locked(&self.families).get_mut(family).expect("it was founded").moods.push_back(mood);
    }

    /// What became of a family so far.
    pub fn counts(&self, family: &str) -> FamilyCounts {
        locked(&self.families).get(family).expect("it was founded").counts
    }

    /// What became of all of them, added up; of requests at once the most of any.
    pub fn all(&self) -> FamilyCounts {
        locked(&self.families).values().fold(FamilyCounts::default(), |sum, family| FamilyCounts {
            requests: sum.requests + family.counts.requests,
            rotated: sum.rotated + family.counts.rotated,
            reused: sum.reused + family.counts.reused,
            most_at_once: sum.most_at_once.max(family.counts.most_at_once),
        })
    }
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked(families: &Families) -> MutexGuard<'_, BTreeMap<String, Family>> {
    families.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, families: Families) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(serve(stream, families.clone()));
    }
}

async fn serve(stream: TcpStream, families: Families) {
    let _ = stream.set_nodelay(true);
    let answer = service_fn(move |request| answer(families.clone(), request));
    // A connection that ends is its client's business, or was dropped as planned.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
}

async fn answer(families: Families, request: Request<Incoming>) -> Result<Response<Body>, Dropped> {
    let body = axum::body::to_bytes(Body::new(request.into_body()), MAX_FORM_BYTES).await.map_err(|_| Dropped)?;
    let form = String::from_utf8_lossy(&body).into_owned();
    let token = form.split('&').find_map(|pair| pair.strip_prefix("refresh_token=rt-SECRET-")).unwrap_or_default();
    let (family, number) = token.rsplit_once('-').ok_or(Dropped)?;
    let (family, number) = (family.to_owned(), number.parse::<u64>().map_err(|_| Dropped)?);
    let (mood, rules) = {
        let mut families = locked(&families);
        let family = families.get_mut(&family).ok_or(Dropped)?;
        family.counts.requests += 1;
        family.at_once += 1;
        family.counts.most_at_once = family.counts.most_at_once.max(family.at_once);
        (family.moods.pop_front(), family.rules)
    };
    // Not the connection's: the work goes on when whoever asked is gone.
    let worked = tokio::spawn(async move {
        let takes = if let Some(Mood::Slow(takes)) = mood { takes } else { rules.takes };
        let _: Result<Infallible, _> = timeout(takes, pending()).await;
        let mut families = locked(&families);
        let known = families.get_mut(&family)?;
        known.at_once -= 1;
        if mood == Some(Mood::Breaks) {
            return Some((500, json!({ "error": "server_error" })));
        }
        let shown = known.shown(number).map(|next| {
            let (access, refresh) = (format!("at-SECRET-{family}-{next}"), format!("rt-SECRET-{family}-{next}"));
            (200, json!({ "access_token": access, "refresh_token": refresh, "expires_in": rules.life.as_secs() }))
        });
        Some(shown.unwrap_or_else(|| (400, json!({ "error": "invalid_grant" }))))
    });
    let (status, body) = worked.await.ok().flatten().ok_or(Dropped)?;
    if mood == Some(Mood::Drops) {
        return Err(Dropped);
    }
    let response = Response::builder().status(status).header("content-type", "application/json");
    Ok(response.body(Body::from(body.to_string())).expect("a status and a plain header"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network;

    async fn shown(provider: &IdentityProvider, token: &str) -> Option<u16> {
        let form = format!("grant_type=refresh_token&refresh_token=rt-SECRET-{token}");
        let sent = network::http_client().post(&provider.url).body(form).send().await;
        sent.ok().map(|answer| answer.status().as_u16())
    }

    #[tokio::test]
    async fn a_spent_token_revokes_its_family_and_no_other_one() {
        let provider = IdentityProvider::start().await;
        let strict = FamilyRules { life: Duration::from_secs(9), ..FamilyRules::default() };
        let lenient = FamilyRules { leeway: Duration::from_secs(60), ..strict };
        provider.found("a", strict, json!({}));
        provider.found("b-1", lenient, json!({}));
        provider.then("a", Mood::Breaks);
        for (token, status) in [("a-1", 500), ("a-1", 200), ("a-2", 200), ("a-1", 400), ("a-3", 400)] {
            assert_eq!(shown(&provider, token).await, Some(status), "{token}");
        }
        for (token, status) in [("b-1-1", 200), ("b-1-1", 200), ("b-1-2", 200), ("b-1-1", 400), ("b-1-3", 400)] {
            assert_eq!(shown(&provider, token).await, Some(status), "{token}");
        }
        assert_eq!(provider.counts("a"), FamilyCounts { requests: 5, rotated: 2, reused: 1, most_at_once: 1 });
        assert_eq!(provider.all().requests, 10);
    }

    #[tokio::test]
    async fn what_it_drops_is_rotated_all_the_same() {
        let provider = IdentityProvider::start().await;
        provider.found("a", FamilyRules::default(), json!({}));
        provider.then("a", Mood::Drops);
        assert_eq!(shown(&provider, "a-1").await, None);
        assert_eq!((shown(&provider, "a-2").await, provider.counts("a").rotated), (Some(200), 2));
    }
}
