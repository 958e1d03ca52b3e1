//! Settings on the doors beside REST, on encryption, and on how requests leave (stack: rustls).
//!
//! Owns which of them belong together. Files named here are read when a replica starts, not when settings are.

use std::net::SocketAddr;
use std::path::PathBuf;

use caribou_core::network::{AllowedNetworks, Cidr};
use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ProxyUrl;
use super::auth::Missing;

/// The gRPC interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Grpc {
    /// Address and port that gRPC is served on. Port 0 takes a free one. When absent: gRPC is not served. With
    /// `auth.mode: disabled` only loopback addresses are accepted.
    #[garde(skip)]
    #[schemars(with = "Option<String>")]
    pub listen: Option<SocketAddr>,
}

/// How callers' connections are encrypted, for REST and gRPC alike. When absent they are not. The files are read again
/// when they change. Relative paths in a file count from that file's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// The certificate chain in PEM, our own certificate first.
    #[garde(skip)]
    pub cert_file: Option<PathBuf>,
    /// Its private key in PEM.
    #[garde(skip)]
    pub key_file: Option<PathBuf>,
    /// Certificates in PEM of those who sign the certificates of callers. When present, only callers that show such a
    /// certificate are served, health checks included.
    #[garde(skip)]
    pub client_ca_file: Option<PathBuf>,
}

/// How requests to servers, token endpoints, HTTP interceptors and issuers of keys leave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Certificates in PEM that are trusted beside those of the system. A relative path in a file counts from that
    /// file's folder.
    #[garde(skip)]
    pub ca_file: Option<PathBuf>,
    /// The HTTP proxy, such as `http://proxy.example:3128`; it may hold a user and a password, which are never
    /// printed. When absent the variables `HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY` decide. `NO_PROXY` holds in either
    /// case. This machine is always reached without one, and so are personal connections.
    #[garde(skip)]
    pub proxy: Option<ProxyUrl>,
    /// What personal connections reach beside the public internet: addresses, or blocks of them such as `10.1.0.0/16`.
    /// As one environment variable: blocks separated by commas.
    #[garde(inner(custom(block)))]
    pub allow_cidrs: Vec<String>,
}

impl Network {
    /// What personal connections reach beside the public internet.
    pub fn allowed(&self) -> AllowedNetworks {
        // Each was read when the settings were.
        AllowedNetworks(self.allow_cidrs.iter().filter_map(|block| block.parse().ok()).collect())
    }
}

fn block(text: &str, _: &()) -> garde::Result {
    text.parse::<Cidr>().map(drop).map_err(garde::Error::new)
}

impl Tls {
    /// What is there only in part. Each setting is right by itself.
    pub(super) fn missing(&self) -> Vec<Missing> {
        let Self { cert_file, key_file, client_ca_file } = self;
        let is_wanted = cert_file.is_some() || key_file.is_some() || client_ca_file.is_some();
        let what = "a part of `tls` is set, and this is needed with it";
        [
            ("tls.cert_file", cert_file.is_some(), "write the file of the certificate chain"),
            ("tls.key_file", key_file.is_some(), "write the file of the certificate's private key"),
        ]
        .into_iter()
        .filter(|(_, is_set, _)| is_wanted && !is_set)
        .map(|(path, _, mend)| Missing { path, what, mend })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_of_addresses_are_let_through() {
        assert!(block("10.1.0.0/16", &()).is_ok() && block("::1", &()).is_ok());
        assert!(block("localhost", &()).is_err() && block("10.0.0.0/40", &()).is_err());
        let network = Network { allow_cidrs: vec!["127.0.0.1".to_owned()], ..Network::default() };
        assert!(network.allowed().admits([127, 0, 0, 1].into()) && !network.allowed().admits([127, 0, 0, 2].into()));
    }

    #[test]
    fn a_certificate_needs_its_key_and_callers_certificates_need_ours() {
        let missing = |cert: bool, key: bool, client_ca: bool| {
            let file = |is_set: bool| is_set.then(|| PathBuf::from("f.pem"));
            let tls = Tls { cert_file: file(cert), key_file: file(key), client_ca_file: file(client_ca) };
            tls.missing().iter().map(|missing| missing.path).collect::<Vec<_>>()
        };
        assert_eq!(missing(false, false, false), [""; 0]);
        assert_eq!(missing(true, true, false), [""; 0]);
        assert_eq!(missing(true, true, true), [""; 0]);
        assert_eq!(missing(true, false, false), ["tls.key_file"]);
        assert_eq!(missing(false, true, false), ["tls.cert_file"]);
        assert_eq!(missing(false, false, true), ["tls.cert_file", "tls.key_file"]);
    }
}
