//! Certificates made for one test: an authority, and what it signs for loopback.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Where a test's servers are, and a name that only a proxy finds.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "server.invalid"];

/// Who signs.
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
pub struct Certificate {
    /// The certificate.
    pub cert: String,
    /// The key.
    pub key: String,
}

impl Authority {
    /// A new one that nobody trusts yet.
    ///
    /// # Panics
    /// The machine has no random numbers.
    pub fn new() -> Self {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("plain parameters").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Its own certificate, which whoever trusts it holds.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for the servers of a test, for a server and for a client.
    ///
    /// # Panics
    /// The machine has no random numbers.
    pub fn sign(&self) -> Certificate {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new(NAMES.map(str::to_owned)).expect("plain names");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let cert = params.signed_by(&key, &self.issuer).expect("plain parameters");
        Certificate { cert: cert.pem(), key: key.serialize_pem() }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Certificate {
    /// What a server shows it with, speaking one of these protocols.
    ///
    /// # Panics
    /// The pair does not fit, which one of an authority does.
    pub fn server(&self, protocols: &[&str]) -> Arc<ServerConfig> {
        let chain = CertificateDer::pem_slice_iter(self.cert.as_bytes()).collect::<Result<_, _>>().expect("PEM");
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("PEM");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("ring has them all").with_no_client_auth();
        let mut config = builder.with_single_cert(chain, key).expect("a fitting pair");
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}
