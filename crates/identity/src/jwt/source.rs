//! Where an issuer's key set is read from.
//!
//! An answer is bounded in bytes and time, and no redirect is followed: the keys come from where the operator said.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use caribou_core::bounds;
use tokio::io::AsyncReadExt as _;
use url::Url;

/// Where the keys are.
#[derive(Clone, PartialEq, Eq)]
pub enum KeySource {
    /// Published by the issuer.
    Url(Url),
    /// In a file that somebody keeps current.
    File(PathBuf),
}

impl fmt::Debug for KeySource {
    /// Not the address: it may hold a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Url(_) => "KeySource(url)",
            Self::File(_) => "KeySource(file)",
        })
    }
}

/// Why there are no keys to begin with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableKeys {
    /// The file cannot be used.
    #[error("the key set {file}, named by `auth.jwt.jwks_file`, cannot be used: {why}")]
    File {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
    /// There can be no connection at all.
    #[error("the HTTP client for `auth.jwt.jwks_url` cannot be made")]
    Client,
}

/// A source that can be read.
pub(super) enum Reader {
    Url(Url, reqwest::Client),
    File(PathBuf),
}

impl Reader {
    /// `client` says how the network is reached.
    pub(super) fn new(source: KeySource, client: reqwest::ClientBuilder) -> Result<Self, UnusableKeys> {
        match source {
            KeySource::File(file) => Ok(Self::File(file)),
            KeySource::Url(url) => {
                let client = client
                    .redirect(reqwest::redirect::Policy::none())
                    .timeout(bounds::KEY_SET_FETCH)
                    .tcp_nodelay(true)
                    .build();
                client.map(|client| Self::Url(url, client)).map_err(|_| UnusableKeys::Client)
            }
        }
    }

    /// The pause between two reads of a set that is held.
    pub(super) fn pause(&self) -> Duration {
        match self {
            Self::Url(..) => bounds::KEY_SET_PAUSE,
            // Costs nobody else anything.
            Self::File(_) => bounds::KEY_SET_RETRY,
        }
    }

    /// What stands there.
    ///
    /// # Errors
    /// Why nothing could be read, without the address.
    pub(super) async fn read(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::File(file) => read_file(file).await,
            Self::Url(url, client) => fetch(url, client).await,
        }
    }
}

async fn read_file(file: &Path) -> Result<Vec<u8>, String> {
    let opened = tokio::fs::File::open(file).await.map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    let mut bounded = opened.take(bounds::MAX_KEY_SET_BYTES as u64 + 1);
    bounded.read_to_end(&mut text).await.map_err(|error| error.to_string())?;
    within_bound(text)
}

async fn fetch(url: &Url, client: &reqwest::Client) -> Result<Vec<u8>, String> {
    let broken = |error: reqwest::Error| match error.is_timeout() {
        true => format!("no answer within {} s", bounds::KEY_SET_FETCH.as_secs()),
        false => "it cannot be reached".to_owned(),
    };
    let mut answer = client.get(url.clone()).send().await.map_err(broken)?;
    if !answer.status().is_success() {
        return Err(format!("it answers {}", answer.status().as_u16()));
    }
    let mut text = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(broken)? {
        text.extend_from_slice(&part);
        text = within_bound(text)?;
    }
    Ok(text)
}

fn within_bound(text: Vec<u8>) -> Result<Vec<u8>, String> {
    if text.len() <= bounds::MAX_KEY_SET_BYTES {
        return Ok(text);
    }
    Err(format!("it is larger than {} bytes", bounds::MAX_KEY_SET_BYTES))
}
