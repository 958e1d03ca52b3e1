//! All headers of one call that are not its server's own, in their order: user, request, interceptors (contract 8.1).
//!
//! Owns which of them go on every request of the session and which on this call alone. What names whom the call acts
//! for goes on every request and parts the sessions (invariant P1). A child process has no headers: those of
//! interceptors reach it with the call (contract 4.8), the others are skipped, which the configuration warns of.

use super::overlay::{is_same, override_headers};
use super::{CredentialKey, Denied, NotSettable, from_context, user_auth};
use crate::config::{Secret, ServerConfig, Transport};
use crate::headers;
use crate::ids::{CredentialDigest, UserId};

/// Headers that are a credential whatever an interceptor says of them.
const CREDENTIALS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// The headers of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerHeaders {
    /// Of the user: the configuration decides them, the user is in the key of the session.
    of_user: Vec<(String, Secret)>,
    /// Of the request's secrets and of interceptors.
    of_request: Vec<(String, Secret)>,
    /// Of interceptors, for this call alone.
    of_call: Vec<(String, Secret)>,
}

impl CallerHeaders {
    /// What `server` wants of a call of `user` with these secrets, before interceptors are asked.
    ///
    /// # Errors
    /// The call must not be made; nothing may be sent for it.
    pub fn plan(server: &ServerConfig, user: &UserId, secrets: &[(String, Secret)]) -> Result<Self, Denied> {
        let of_user = match &server.user_auth {
            Some(auth) => user_auth::header(&server.name, auth, user)?.into_iter().collect(),
            None => Vec::new(),
        };
        let of_request = match &server.headers_from_context {
            Some(context) => from_context::headers(&server.name, context, secrets)?,
            None => Vec::new(),
        };
        Ok(Self { of_user, of_request, of_call: Vec::new() })
    }

    /// What `server` wants of a call about a task that `user` submitted, made later and without its request: headers of
    /// the request's secrets are left out, and nobody is refused for want of them (contract 6.13).
    ///
    /// # Errors
    /// The call must not be made; nothing may be sent for it.
    pub fn plan_in_background(server: &ServerConfig, user: &UserId) -> Result<Self, Denied> {
        let of_user = match &server.user_auth {
            Some(auth) => user_auth::header(&server.name, auth, user)?.into_iter().collect(),
            None => Vec::new(),
        };
        Ok(Self { of_user, ..Self::default() })
    }

    /// Lays a header of an interceptor over: the later one wins. `is_per_call` says that it tells nothing about who
    /// calls; that is not believed of a header that is always a credential.
    ///
    /// # Errors
    /// It cannot be sent, or is none that may be set.
    pub fn set(
        &mut self,
        server: &ServerConfig,
        name: &str,
        value: &Secret,
        is_per_call: bool,
    ) -> Result<(), NotSettable> {
        if headers::is_protocol_header(name) {
            return Err(NotSettable::OfProtocol { name: name.to_owned() });
        }
        let value = headers::legal(name, value.expose())
            .map_err(|reason| NotSettable::Illegal { name: name.to_owned(), reason })?;
        let header = [(name.to_owned(), Secret::new(value))];
        let is_per_call = is_per_call && !CREDENTIALS.iter().any(|credential| is_same(credential, name));
        if is_per_call || server.transport.owns_process() {
            self.of_call = override_headers(&self.of_call, &header, declared(server));
        } else {
            self.of_call.retain(|(other, _)| !is_same(other, name));
            self.of_request = override_headers(&self.of_request, &header, declared(server));
        }
        Ok(())
    }

    /// All of them over the server's own, as the next interceptor sees them. Without an access token of ours.
    pub fn laid_over(&self, server: &ServerConfig) -> Vec<(String, Secret)> {
        let own = declared(server);
        let session = override_headers(own, &self.of_session(), own);
        override_headers(&session, &self.of_call, own)
    }

    /// Those for every request of the session.
    pub fn of_session(&self) -> Vec<(String, Secret)> {
        if self.of_user.is_empty() {
            return self.of_request.clone();
        }
        override_headers(&self.of_user, &self.of_request, &[])
    }

    /// Those for this call alone.
    pub fn of_call(&self) -> &[(String, Secret)] {
        &self.of_call
    }

    /// What the session must have been opened with; `None` when the request decides none of its headers.
    pub fn digest(&self, key: &CredentialKey) -> Option<CredentialDigest> {
        key.digest(&self.of_request)
    }

    /// All values, for whoever must keep them out of messages.
    pub fn values(&self) -> impl Iterator<Item = &Secret> {
        [&self.of_user, &self.of_request, &self.of_call].into_iter().flatten().map(|(_, value)| value)
    }
}

/// The headers that the server's configuration declares.
fn declared(server: &ServerConfig) -> &[(String, Secret)] {
    match &server.transport {
        Transport::Http(remote) | Transport::Sse(remote) => &remote.headers,
        Transport::Stdio(_) => &[],
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Source, parse};

    const KEY: [u8; 32] = [3; 32];

    fn good(body: &str) -> ServerConfig {
        let text = format!(r#"{{"mcpServers": {{"s": {{{body}}}}}}}"#);
        let document = parse(&Source { file: Path::new("/test.json"), text: text.as_bytes() }, &|_| None).unwrap();
        ServerConfig::clone(document.servers[0].config.as_ref().unwrap())
    }

    fn server(more: &str) -> ServerConfig {
        let text = format!(
            r#""type": "http", "url": "http://h", "headers": {{"authorization": "static", "X-Own": "o"}}{more}"#
        );
        good(&text)
    }

    fn both() -> ServerConfig {
        server(
            r#", "user_auth": {"users": {"ann": "of ann"}},
                "headers_from_context": {"headers": {"AUTHORIZATION": "token"}, "on_missing": "passthrough"}"#,
        )
    }

    fn secrets(pairs: &[(&str, &str)]) -> Vec<(String, Secret)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect()
    }

    fn shown(headers: &[(String, Secret)]) -> Vec<(&str, &str)> {
        headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect()
    }

    fn digest(headers: &CallerHeaders) -> Option<CredentialDigest> {
        headers.digest(&CredentialKey::new(KEY))
    }

    #[test]
    fn each_source_wins_over_the_one_before_and_one_field_is_left() {
        // Contract 8.1, 8.2.
        let (server, ann) = (both(), UserId::from("ann"));
        let of_user = CallerHeaders::plan(&server, &ann, &[]).unwrap();
        assert_eq!(shown(&of_user.laid_over(&server)), [("authorization", "of ann"), ("X-Own", "o")]);
        let mut of_request = CallerHeaders::plan(&server, &ann, &secrets(&[("token", "of request")])).unwrap();
        assert_eq!(shown(&of_request.laid_over(&server)), [("authorization", "of request"), ("X-Own", "o")]);
        assert_eq!(of_request.of_session().len(), 1, "one field on the wire");
        of_request.set(&server, "Authorization", &Secret::new("of interceptor"), false).unwrap();
        assert_eq!(shown(&of_request.laid_over(&server)), [("authorization", "of interceptor"), ("X-Own", "o")]);
        assert_eq!(shown(&of_request.of_session()), [("Authorization", "of interceptor")]);
    }

    #[test]
    fn what_the_request_brings_parts_sessions_and_what_the_user_has_does_not() {
        // Invariant P1.
        let (server, ann) = (both(), UserId::from("ann"));
        let plan = |token: &[(&str, &str)]| CallerHeaders::plan(&server, &ann, &secrets(token)).unwrap();
        assert_eq!(digest(&plan(&[])), None);
        let one = digest(&plan(&[("token", "t1")]));
        assert!(
            one.is_some() && one == digest(&plan(&[("token", "t1\n")])) && one != digest(&plan(&[("token", "t2")]))
        );
        let mut numbered = plan(&[("token", "t1")]);
        numbered.set(&server, "X-Request", &Secret::new("7"), true).unwrap();
        assert_eq!(digest(&numbered), one, "what is of one call alone parts nothing");
        assert_eq!(shown(numbered.of_call()), [("X-Request", "7")]);
        numbered.set(&server, "x-request", &Secret::new("8"), false).unwrap();
        assert!(digest(&numbered) != one && numbered.of_call().is_empty());
    }

    #[test]
    fn a_credential_is_never_of_one_call_alone() {
        // Invariant P1.
        let server = server("");
        let mut headers = CallerHeaders::default();
        headers.set(&server, "COOKIE", &Secret::new("c"), true).unwrap();
        assert!(headers.of_call().is_empty() && digest(&headers).is_some());
    }

    #[test]
    fn an_interceptor_sets_neither_what_the_protocol_owns_nor_what_cannot_be_sent() {
        // Contract 8.3.
        let server = server("");
        let mut headers = CallerHeaders::default();
        let refused = headers.set(&server, "Mcp-Session-Id", &Secret::new("x"), true).unwrap_err();
        assert!(matches!(refused, NotSettable::OfProtocol { .. }));
        let refused = headers.set(&server, "X-Key", &Secret::new("hunter22\nX: y"), true).unwrap_err();
        assert!(refused.to_string().contains("X-Key") && !refused.to_string().contains("hunter22"), "{refused}");
        assert_eq!(headers, CallerHeaders::default());
    }

    #[test]
    fn a_child_process_gets_the_headers_of_interceptors_with_the_call_alone() {
        // Contract 4.8, 8.4 and 8.5: the other headers are skipped, not denied.
        let child = good(r#""command": "x", "user_auth": {"users": {}}"#);
        let mut headers = CallerHeaders::plan(&child, &UserId::from("ann"), &[]).unwrap();
        assert_eq!(headers, CallerHeaders::default());
        headers.set(&child, "Authorization", &Secret::new("x"), false).unwrap();
        assert!(digest(&headers).is_none() && headers.of_session().is_empty());
        assert_eq!(shown(headers.of_call()), [("Authorization", "x")]);
    }

    #[test]
    fn debug_output_holds_no_value() {
        // Invariant O3.
        let headers = CallerHeaders::plan(&both(), &UserId::from("ann"), &secrets(&[("token", "hunter22")])).unwrap();
        assert!(!format!("{headers:?}").contains("hunter22"));
    }
}
