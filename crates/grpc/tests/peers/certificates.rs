//! Members known by their certificates, without a secret.

use std::sync::Arc;

use caribou_core::ids::BootId;
use caribou_grpc::{Membership, PeerClient, PeerDoor, PeerOptions};
use caribou_ports::peers::PeerError;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, crypto};
use tokio::sync::watch;

use super::stand::{Replica, call, client, member, open};

/// Who signs the certificates of one cluster.
struct Authority {
    root: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

type Shown = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&key).unwrap().der().clone();
        Self { root, issuer: Issuer::new(params, key) }
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        Arc::new(roots)
    }

    fn sign(&self, name: &str) -> Shown {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        (vec![cert.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }

    /// A replica that shows a certificate for `name` and lets in whoever shows one of this authority.
    async fn replica(&self, name: &str) -> Replica {
        let provider = Arc::new(crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(self.roots(), provider.clone()).build().unwrap();
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let (chain, key) = self.sign(name);
        let mut config = builder.with_client_cert_verifier(verifier).with_single_cert(chain, key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let (_, tls) = watch::channel(Arc::new(config));
        Replica::start("b", PeerDoor { membership: Membership::new(None), tls: Some(tls) }).await
    }

    /// A client that believes this authority and shows this certificate, if any.
    fn client(&self, shown: Option<Shown>, certificate_name: Option<&str>) -> PeerClient {
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(self.roots());
        let mut config = match shown {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).unwrap(),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        PeerClient::new(PeerOptions {
            tls: Some(watch::channel(Arc::new(config)).1),
            certificate_name: certificate_name.map(str::to_owned),
            ..PeerOptions::new(BootId::from("asker"), Membership::new(None))
        })
    }
}

async fn is_unreachable(client: &PeerClient, replica: &Replica) -> bool {
    matches!(open(client, "b", replica.address).await.err(), Some(PeerError::Unreachable(_)))
}

#[tokio::test]
async fn replicas_with_certificates_of_one_authority_are_members() {
    let ours = Authority::new();
    let replica = ours.replica("127.0.0.1").await;
    let session = open(&ours.client(Some(ours.sign("127.0.0.1")), None), "b", replica.address).await.unwrap();
    assert_eq!(session.call_tool(call("echo", Some("[1.0]"))).await.unwrap().get(), "[1.0]");
}

#[tokio::test]
async fn one_name_in_all_certificates_is_enough() {
    let ours = Authority::new();
    let replica = ours.replica("caribou-peers").await;
    let shown = || Some(ours.sign("caribou-peers"));
    assert!(open(&ours.client(shown(), Some("caribou-peers")), "b", replica.address).await.is_ok());
    assert!(is_unreachable(&ours.client(shown(), None), &replica).await, "the address is not in it");
}

#[tokio::test]
async fn a_foreign_authority_is_believed_by_neither_side() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let replica = ours.replica("127.0.0.1").await;
    // They show us a certificate of their own; we show them one that they do not know; one shows none at all.
    assert!(is_unreachable(&theirs.client(Some(ours.sign("127.0.0.1")), None), &replica).await);
    assert!(is_unreachable(&ours.client(Some(theirs.sign("127.0.0.1")), None), &replica).await);
    assert!(is_unreachable(&ours.client(None, None), &replica).await);
    assert!(is_unreachable(&client(member()), &replica).await, "without TLS");
    assert!(replica.owner.opened.lock().unwrap().is_empty());
}
