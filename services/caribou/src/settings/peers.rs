//! Settings of how replicas reach one another, and believe one another (durability.md §6).
//!
//! Owns which of them belong together. Files named here are read when a replica starts, not when settings are.

use std::net::SocketAddr;
use std::path::PathBuf;

use caribou_core::config::Secret;
use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Cluster;
use super::auth::Missing;
use super::notify::Readable;

/// Shorter secrets can be guessed by whoever reaches the port.
const SHORTEST_SECRET: usize = 32;

/// As long as a header of common libraries may be.
const LONGEST_SECRET: usize = 1_024;

/// What all replicas hold and nobody else does.
#[derive(Clone, PartialEq, Eq)]
pub struct PeerSecret(Secret);

impl PeerSecret {
    /// The secret, for the one place that shows it to other replicas.
    pub fn secret(&self) -> &Secret {
        &self.0
    }
}

impl Readable for PeerSecret {
    fn read(text: Secret) -> Result<Self, String> {
        let secret = text.expose();
        let is_fit =
            (SHORTEST_SECRET..=LONGEST_SECRET).contains(&secret.len()) && secret.bytes().all(|b| b.is_ascii_graphic());
        if is_fit { Ok(Self(text)) } else { Err("a secret of replicas has 32 characters or more".to_owned()) }
    }
}

/// Certificates that replicas show one another. Each is served only if it shows one that `ca_file` signed, and shows
/// its own to all it asks. The files are read again when they change. Relative paths in a file count from that file's
/// folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct PeerTls {
    /// The certificate chain in PEM, our own certificate first; for servers and for clients.
    #[garde(skip)]
    pub cert_file: Option<PathBuf>,
    /// Its private key in PEM.
    #[garde(skip)]
    pub key_file: Option<PathBuf>,
    /// Certificates in PEM of those who sign the certificates of replicas, and of nobody else.
    #[garde(skip)]
    pub ca_file: Option<PathBuf>,
    /// A name that the certificate of every replica holds. When absent: the host of the address at which it is reached.
    #[garde(inner(length(min = 1, max = 253)))]
    pub name: Option<String>,
}

impl PeerTls {
    /// Whether connections between replicas are encrypted.
    pub fn is_wanted(&self) -> bool {
        self.cert_file.is_some() || self.key_file.is_some() || self.ca_file.is_some() || self.name.is_some()
    }
}

/// Whether a text is `host:port` of one machine.
pub(super) fn address(text: &str, _: &()) -> garde::Result {
    let good = text.rsplit_once(':').is_some_and(|(host, port)| {
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        let is_somewhere = text.parse::<SocketAddr>().map_or(true, |address| !address.ip().is_unspecified());
        !host.is_empty() && host.bytes().all(is_host) && port.parse::<u16>().is_ok_and(|port| port > 0) && is_somewhere
    });
    if good { Ok(()) } else { Err(garde::Error::new("not an address that others can reach")) }
}

impl Cluster {
    /// What `listen` needs and is not there, and what is there only in part. Each setting is right by itself.
    pub(super) fn missing(&self) -> Vec<Missing> {
        let PeerTls { cert_file, key_file, ca_file, .. } = &self.tls;
        let (tls, is_wanted) = (&self.tls, self.tls.is_wanted());
        let part = "a part of `cluster.tls` is set, and this is needed with it";
        let exposed = self.listen.is_some_and(|address| !address.ip().to_canonical().is_loopback());
        let everywhere = self.listen.is_some_and(|address| address.ip().is_unspecified());
        let unknown = self.listen.is_some() && self.secret.is_none() && !tls.is_wanted();
        [
            (
                is_wanted && cert_file.is_none(),
                "cluster.tls.cert_file",
                part,
                "write the file of the certificate chain",
            ),
            (is_wanted && key_file.is_none(), "cluster.tls.key_file", part, "write the file of its private key"),
            (is_wanted && ca_file.is_none(), "cluster.tls.ca_file", part, "write the file of who signs for replicas"),
            (
                unknown,
                "cluster.secret",
                "with `cluster.listen` replicas must know one another",
                "write the same 32 characters or more for all of them, or set `cluster.tls`",
            ),
            (
                exposed && !is_wanted && !self.allow_plaintext,
                "cluster.tls.cert_file",
                "`cluster.listen` can be reached from other machines, and the secret and all calls would go over the \
                 network for everybody to read",
                "set `cluster.tls`, or `cluster.allow_plaintext: true` where the network itself is encrypted",
            ),
            (
                everywhere && self.advertise.is_none(),
                "cluster.advertise",
                "`cluster.listen` names no single address, so the others cannot know where this replica is",
                "write the host and port at which the others reach it",
            ),
        ]
        .into_iter()
        .filter(|(is_missing, ..)| *is_missing)
        .map(|(_, path, what, mend)| Missing { path, what, mend })
        .collect()
    }

    /// Whether what replicas say can be read on the network by others.
    pub fn is_readable(&self) -> bool {
        let exposed = self.listen.is_some_and(|address| !address.ip().to_canonical().is_loopback());
        exposed && !self.tls.is_wanted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(text: &str) -> Vec<&'static str> {
        let cluster: Cluster = serde_json::from_str(text).unwrap();
        cluster.validate().unwrap();
        cluster.missing().iter().map(|missing| missing.path).collect()
    }

    #[test]
    fn replicas_that_listen_must_know_one_another_and_be_found() {
        let secret = r#""secret":"0123456789abcdef0123456789abcdef""#;
        let tls = r#""tls":{"cert_file":"c","key_file":"k","ca_file":"a"}"#;
        for (settings, expected) in [
            (String::new(), &[][..]),
            (secret.to_owned(), &[]),
            (r#""listen":"127.0.0.1:0""#.to_owned(), &["cluster.secret"]),
            (format!(r#""listen":"127.0.0.1:0",{secret}"#), &[]),
            (format!(r#""listen":"[::1]:1",{tls}"#), &[]),
            (format!(r#""listen":"10.0.0.1:1",{secret}"#), &["cluster.tls.cert_file"]),
            (format!(r#""listen":"10.0.0.1:1","allow_plaintext":true,{secret}"#), &[]),
            (format!(r#""listen":"10.0.0.1:1",{tls}"#), &[]),
            (format!(r#""listen":"0.0.0.0:1",{tls}"#), &["cluster.advertise"]),
            (format!(r#""listen":"[::]:1","advertise":"a.example:1",{tls}"#), &[]),
            (
                r#""tls":{"name":"n"}"#.to_owned(),
                &["cluster.tls.cert_file", "cluster.tls.key_file", "cluster.tls.ca_file"],
            ),
        ] {
            assert_eq!(missing(&format!("{{{settings}}}")), expected, "{settings}");
        }
    }

    #[test]
    fn an_address_is_one_that_others_can_reach() {
        for good in ["10.0.0.1:8760", "caribou-0.caribou-peers.default.svc:8760", "[fd00::1]:1", "localhost:65535"] {
            assert!(address(good, &()).is_ok(), "{good}");
        }
        for bad in ["", "host", "host:", ":1", "host:0", "host:65536", "0.0.0.0:1", "[::]:1", "a b:1", "http://h:1"] {
            assert!(address(bad, &()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_is_long_and_never_printed() {
        // Invariant O3.
        for bad in ["short", "hunter2 hunter2 hunter2 hunter2 hunter2", &"x".repeat(1_025)] {
            let error = serde_json::from_str::<Cluster>(&format!(r#"{{"secret":"{bad}"}}"#)).unwrap_err().to_string();
            assert!(!error.contains(bad), "{error}");
        }
        let text = r#"{"secret":"hunter2-hunter2-hunter2-hunter2-"}"#;
        let cluster: Cluster = serde_json::from_str(text).unwrap();
        let shown = format!("{cluster:?} {}", serde_json::to_string(&cluster).unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(cluster.secret.unwrap().value().secret().expose().starts_with("hunter2"));
    }
}
