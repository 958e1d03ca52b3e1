//! Where runs are looked up: a URL with the names of run, thread and user in it.

use std::fmt;

use caribou_core::config::Secret;
use caribou_core::ids::Scope;
use url::Url;

const RUN: &str = "{run_id}";
const THREAD: &str = "{thread_id}";
const USER: &str = "{user_id}";

/// A template of URLs. May hold a login, and is never printed (invariant O3).
#[derive(Clone, PartialEq, Eq)]
pub struct LookUpUrl(Secret);

/// It is no template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a look-up URL is http or https and has `{{run_id}}` in its path or query, and `{{thread_id}}` and `{{user_id}}` \
     there if it needs them"
)]
pub struct NotALookUpUrl;

impl LookUpUrl {
    /// Reads a template.
    ///
    /// # Errors
    /// It names no run, or does not become a URL, or names something in the host.
    pub fn parse(template: Secret) -> Result<Self, NotALookUpUrl> {
        let text = template.expose();
        let filled = |with: &str| Url::parse(&fill(text, [with; 3])).map_err(|_| NotALookUpUrl);
        let (one, other) = (filled("a")?, filled("b")?);
        let is_http = matches!(one.scheme(), "http" | "https") && one.has_host();
        // What a receiver answers must never decide who is asked, and with which login.
        let is_same_place = one.origin() == other.origin()
            && one.username() == other.username()
            && one.password() == other.password()
            && !text.split('#').skip(1).any(|fragment| fragment.contains(RUN));
        if is_http && is_same_place && text.contains(RUN) { Ok(Self(template)) } else { Err(NotALookUpUrl) }
    }

    /// The URL of a run; `None` = its name or those of its scope cannot stand in one.
    pub(crate) fn of(&self, scope: &Scope, run_id: &str) -> Option<Url> {
        let names = [run_id, scope.thread.as_str(), scope.user.as_str()];
        // Such a segment would lead elsewhere, whether its dots are encoded or not.
        let leads_elsewhere = |name: &str| name.is_empty() || name.chars().all(|c| c == '.');
        if names.into_iter().any(leads_elsewhere) {
            return None;
        }
        let encoded = names.map(encode);
        Url::parse(&fill(self.0.expose(), [&encoded[0], &encoded[1], &encoded[2]])).ok()
    }
}

impl fmt::Debug for LookUpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// In one pass, so that a name is never taken for a place of another.
fn fill(template: &str, [run, thread, user]: [&str; 3]) -> String {
    let mut filled = String::with_capacity(template.len() + run.len() + thread.len() + user.len());
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        let open = &rest[at..];
        let place = [(RUN, run), (THREAD, thread), (USER, user)].into_iter().find(|(place, _)| open.starts_with(place));
        let (place, name) = place.unwrap_or(("{", "{"));
        filled.push_str(name);
        rest = &open[place.len()..];
    }
    filled.push_str(rest);
    filled
}

/// Percent-encoded, but for the unreserved characters of RFC 3986 §2.3.
fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Result<LookUpUrl, NotALookUpUrl> {
        LookUpUrl::parse(Secret::new(text))
    }

    #[test]
    fn names_are_encoded_and_cannot_lead_elsewhere() {
        let scope = Scope::new(Some("ann/../x"), Some("t?1"));
        let runs = template("https://agent/threads/{thread_id}/runs/{run_id}?for={user_id}").unwrap();
        let url = runs.of(&scope, "r#1/{user_id}").unwrap();
        assert_eq!(url.as_str(), "https://agent/threads/t%3F1/runs/r%231%2F%7Buser_id%7D?for=ann%2F..%2Fx");
        for run in ["", ".", ".."] {
            assert_eq!(runs.of(&scope, run), None, "{run}");
        }
        assert!(runs.of(&scope, "%2e%2e").unwrap().path().ends_with("/runs/%252e%252e"));
    }

    #[test]
    fn a_template_names_the_run_outside_of_the_host() {
        for text in [
            "https://agent/runs",
            "https://{run_id}/runs",
            "https://{user_id}@agent/runs/{run_id}",
            "https://agent:{thread_id}/{run_id}",
            "file:///{run_id}",
            "{run_id}",
            "https://agent/x#{run_id}",
        ] {
            assert_eq!(template(text), Err(NotALookUpUrl), "{text}");
        }
        let with_login = template("http://ann:hunter2@agent/{run_id}");
        assert_eq!(format!("{with_login:?}"), "Ok(***)");
    }
}
