//! What replicas show one another, as server and as client, and whom they believe: only their own authority.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ServerConfig, crypto};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::server::{Wrong, read};
use super::trusted::authorities;
use crate::settings::PeerTls;

/// Between two looks at three small files: soon beside the time a certificate is renewed ahead of its end.
const LOOK_EVERY: Duration = Duration::from_secs(2);

const CERT: &str = "cluster.tls.cert_file";
const KEY: &str = "cluster.tls.key_file";
const CA: &str = "cluster.tls.ca_file";

/// The files as they were read. Holds a private key: has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PeerMaterial {
    cert: (PathBuf, Vec<u8>),
    key: (PathBuf, Vec<u8>),
    ca: (PathBuf, Vec<u8>),
}

impl PeerMaterial {
    /// Reads the files that the settings name; `None` when they name none.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub(crate) fn read(tls: &PeerTls) -> Result<Option<Self>, Wrong> {
        let (Some(cert), Some(key), Some(ca)) = (&tls.cert_file, &tls.key_file, &tls.ca_file) else { return Ok(None) };
        Ok(Some(Self { cert: read(CERT, cert)?, key: read(KEY, key)?, ca: read(CA, ca)? }))
    }

    /// Whether replicas can be spoken to with them.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        self.configs().map(drop)
    }

    /// How we are asked, and how we ask.
    fn configs(&self) -> Result<(Arc<ServerConfig>, Arc<ClientConfig>), Wrong> {
        let bad_cert = |why: &str| Wrong::new(CERT, &self.cert.0, why);
        let bad_ca = |why: &str| Wrong::new(CA, &self.ca.0, why);
        let unfit = |error: rustls::Error| {
            // Texts of the library name the kind of fault and never hold the key.
            Wrong::new(KEY, &self.key.0, &format!("is not the private key of the certificate in `{CERT}`: {error}"))
        };
        let chain = CertificateDer::pem_slice_iter(&self.cert.1).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|_| bad_cert("is not PEM"))?;
        if chain.is_empty() {
            return Err(bad_cert("holds no certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key.1)
            .map_err(|_| Wrong::new(KEY, &self.key.0, "holds no private key in PEM"))?;
        let ours = Arc::new(authorities(&self.ca.1).map_err(bad_ca)?);
        let provider = Arc::new(crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(ours.clone(), provider.clone()).build();
        let verifier = verifier.map_err(|error| bad_ca(&format!("cannot be used: {error}")))?;
        let no_versions = |error: rustls::Error| bad_cert(&format!("cannot be served: {error}"));
        let server = ServerConfig::builder_with_provider(provider.clone());
        let server = server.with_safe_default_protocol_versions().map_err(no_versions)?;
        let server = server.with_client_cert_verifier(verifier).with_single_cert(chain.clone(), key.clone_key());
        let client = ClientConfig::builder_with_provider(provider);
        let client = client.with_safe_default_protocol_versions().map_err(no_versions)?;
        let client = client.with_root_certificates(ours).with_client_auth_cert(chain, key);
        let (mut server, mut client) = (server.map_err(unfit)?, client.map_err(unfit)?);
        server.alpn_protocols = vec![b"h2".to_vec()];
        client.alpn_protocols = vec![b"h2".to_vec()];
        Ok((Arc::new(server), Arc::new(client)))
    }
}

/// The configurations of the moment. Followed as long as somebody listens.
#[derive(Clone)]
pub(crate) struct FollowedPeers {
    /// How others ask us.
    pub(crate) server: watch::Receiver<Arc<ServerConfig>>,
    /// How we ask others.
    pub(crate) client: watch::Receiver<Arc<ClientConfig>>,
}

impl FollowedPeers {
    /// Reads the files that the settings name and follows them; `None` when they name none.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub(crate) fn begin(tls: &PeerTls) -> Result<Option<Self>, Wrong> {
        let Some(material) = PeerMaterial::read(tls)? else { return Ok(None) };
        let (server, client) = material.configs()?;
        let (server, client) = (watch::Sender::new(server), watch::Sender::new(client));
        let followed = Self { server: server.subscribe(), client: client.subscribe() };
        tokio::spawn(follow(tls.clone(), Told { seen: Ok(material), server, client }));
        Ok(Some(followed))
    }
}

/// What was seen last, and who is told of what comes next.
struct Told {
    seen: Result<PeerMaterial, Wrong>,
    server: watch::Sender<Arc<ServerConfig>>,
    client: watch::Sender<Arc<ClientConfig>>,
}

impl Told {
    /// Tells of what is new and good, and once of what is new and wrong.
    fn look(&mut self, found: Result<Option<PeerMaterial>, Wrong>) {
        // The settings do not change, so what they named is named still.
        let Some(found) = found.transpose() else { return };
        if found == self.seen {
            return;
        }
        match found.as_ref().map_err(Clone::clone).and_then(PeerMaterial::configs) {
            Ok((server, client)) => {
                self.server.send_replace(server);
                self.client.send_replace(client);
                tracing::info!("the renewed certificate holds for new connections between replicas");
            }
            Err(wrong) => tracing::warn!("the changed certificate is not used, the last good one goes on: {wrong}"),
        }
        self.seen = found;
    }
}

async fn follow(tls: PeerTls, mut told: Told) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            () = async { tokio::join!(told.server.closed(), told.client.closed()); } => return,
            _ = looks.tick() => {}
        }
        let tls = tls.clone();
        if let Ok(found) = spawn_blocking(move || PeerMaterial::read(&tls)).await {
            told.look(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;

    fn pair() -> (String, String) {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["caribou".to_owned()]).unwrap();
        (cert.pem(), signing_key.serialize_pem())
    }

    fn material(cert: &str, key: &str, ca: &str) -> PeerMaterial {
        let held = |name: &str, text: &str| (PathBuf::from(name), text.as_bytes().to_vec());
        PeerMaterial { cert: held("peer.crt", cert), key: held("peer.key", key), ca: held("ca.crt", ca) }
    }

    #[test]
    fn both_sides_speak_http_2() {
        let (cert, key) = pair();
        let (server, client) = material(&cert, &key, &cert).configs().ok().unwrap();
        assert_eq!(
            (&server.alpn_protocols[..], &client.alpn_protocols[..]),
            (&[b"h2".to_vec()][..], &[b"h2".to_vec()][..])
        );
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_its_setting_and_without_its_text() {
        let ((cert, key), (_, other)) = (pair(), pair());
        for (material, beginning) in [
            (material("", &key, &cert), "cluster.tls.cert_file: peer.crt holds no certificate"),
            (material(&cert, "hunter2", &cert), "cluster.tls.key_file: peer.key holds no private key in PEM"),
            (
                material(&cert, &other, &cert),
                "cluster.tls.key_file: peer.key is not the private key of the certificate",
            ),
            (material(&cert, &key, "hunter2"), "cluster.tls.ca_file: ca.crt holds no certificate"),
        ] {
            let refused = material.check().unwrap_err().to_string();
            assert!(refused.starts_with(beginning) && !refused.contains("hunter2"), "{refused}");
        }
        let nowhere = |name: &str| Some(PathBuf::from(format!("/nowhere/{name}")));
        let (cert_file, key_file, ca_file) = (nowhere("peer.crt"), nowhere("peer.key"), nowhere("ca.crt"));
        let tls = PeerTls { cert_file, key_file, ca_file, name: None };
        assert!(PeerMaterial::read(&tls).err().unwrap().to_string().starts_with("cluster.tls.cert_file: /nowhere/"));
        assert!(matches!(PeerMaterial::read(&PeerTls::default()), Ok(None)));
    }
}
