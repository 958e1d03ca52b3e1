//! What every request of one session carries at this moment.
//!
//! Owns the ready-made header maps, so that a call clones instead of composing, and the session's identity towards
//! the server. Immutable: a session that is opened again, or moves, gets a new one. The session id is a secret (O3).

use http::{HeaderMap, HeaderValue};
use url::Url;

use super::link::Link;
use crate::wire::headers::{PROTOCOL_VERSION, SESSION_ID};

/// The longest session id that is kept; what servers send has some 40 bytes.
const MAX_SESSION_ID: usize = 4 * 1024;

/// The state of one session between two requests.
pub(crate) struct Live {
    /// Where requests go: the configured URL, or where a redirect led.
    pub(crate) url: Url,
    /// The headers of a POST.
    pub(crate) post: HeaderMap,
    /// The session's id, if the server gave one.
    pub(crate) session: Option<HeaderValue>,
    /// The revision in use; none before it is agreed on.
    pub(crate) version: Option<HeaderValue>,
    /// How many sessions were opened before this one in its place.
    pub(crate) generation: u64,
}

impl Live {
    /// A session with these properties.
    pub(crate) fn new(
        link: &Link,
        url: Url,
        session: Option<HeaderValue>,
        version: Option<HeaderValue>,
        generation: u64,
    ) -> Self {
        let mut post = link.post_headers(&url);
        mark(&mut post, session.as_ref(), version.as_ref());
        Self { url, post, session, version, generation }
    }

    /// The same session at another place.
    pub(crate) fn moved_to(&self, link: &Link, url: Url) -> Self {
        Self::new(link, url, self.session.clone(), self.version.clone(), self.generation)
    }

    /// The headers of a GET.
    pub(crate) fn get(&self, link: &Link) -> HeaderMap {
        let mut get = link.get_headers(&self.url);
        mark(&mut get, self.session.as_ref(), self.version.as_ref());
        get
    }
}

fn mark(headers: &mut HeaderMap, session: Option<&HeaderValue>, version: Option<&HeaderValue>) {
    if let Some(session) = session {
        headers.insert(SESSION_ID, session.clone());
    }
    if let Some(version) = version {
        headers.insert(PROTOCOL_VERSION, version.clone());
    }
}

/// The session id in the head of an answer to `initialize`. One with characters that mcp.md §3.3 does not allow is
/// taken for none: it could not be sent back as it came.
pub(crate) fn session_id(headers: &HeaderMap) -> Option<HeaderValue> {
    checked(headers.get(SESSION_ID)?.clone())
}

/// The same id, marked as a secret, if it can be one.
pub(super) fn checked(mut id: HeaderValue) -> Option<HeaderValue> {
    let legal = !id.is_empty() && id.len() <= MAX_SESSION_ID && id.as_bytes().iter().all(u8::is_ascii_graphic);
    id.set_sensitive(true);
    legal.then_some(id)
}
