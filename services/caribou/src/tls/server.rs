//! What callers are shown: files into the two configurations of the doors.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ServerConfig, crypto};

use super::trusted::authorities;
use crate::settings;

/// The protocol of REST and that of gRPC, as they are negotiated (RFC 7301).
const PROTOCOLS: [&[u8]; 2] = [b"http/1.1", b"h2"];

/// A file that cannot be used. Names the setting and the file, nothing of what it holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {file} {why}", file = file.display())]
pub(crate) struct Wrong {
    /// The setting that names it.
    pub(crate) setting: &'static str,
    file: PathBuf,
    why: String,
}

impl Wrong {
    /// `why` is the end of a sentence that names the file.
    pub(super) fn new(setting: &'static str, file: &Path, why: &str) -> Self {
        Self { setting, file: file.to_owned(), why: why.to_owned() }
    }
}

/// The files as they were read. Holds a private key: has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Material {
    cert: (PathBuf, Vec<u8>),
    key: (PathBuf, Vec<u8>),
    client_ca: Option<(PathBuf, Vec<u8>)>,
}

/// How connections of each door are encrypted.
pub(super) struct Configs {
    pub(super) rest: Arc<ServerConfig>,
    pub(super) grpc: Arc<ServerConfig>,
}

impl Material {
    /// Reads the files that the settings name; `None` when they name none.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub(crate) fn read(tls: &settings::Tls) -> Result<Option<Self>, Wrong> {
        let (Some(cert), Some(key)) = (&tls.cert_file, &tls.key_file) else { return Ok(None) };
        Ok(Some(Self {
            cert: read("tls.cert_file", cert)?,
            key: read("tls.key_file", key)?,
            client_ca: tls.client_ca_file.as_ref().map(|file| read("tls.client_ca_file", file)).transpose()?,
        }))
    }

    /// Whether a door can be opened with them.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        self.configs().map(drop)
    }

    /// The configurations that they make.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub(super) fn configs(&self) -> Result<Configs, Wrong> {
        let wrong = |setting, (file, _): &(PathBuf, _), why: String| Wrong { setting, file: file.clone(), why };
        let bad_cert = |why: &str| wrong("tls.cert_file", &self.cert, why.to_owned());
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&self.cert.1)
            .collect::<Result<_, _>>()
            .map_err(|_| bad_cert("is not PEM"))?;
        if chain.is_empty() {
            return Err(bad_cert("holds no certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key.1)
            .map_err(|_| wrong("tls.key_file", &self.key, "holds no private key in PEM".to_owned()))?;
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| bad_cert(&format!("cannot be served: {error}")))?;
        let builder = match &self.client_ca {
            Some(file) => builder.with_client_cert_verifier(
                verifier(&file.1, provider).map_err(|why| wrong("tls.client_ca_file", file, why))?,
            ),
            None => builder.with_no_client_auth(),
        };
        let config = builder.with_single_cert(chain, key).map_err(|error| {
            // Texts of the library name the kind of fault and never hold the key.
            let why = format!("is not the private key of the certificate in `tls.cert_file`: {error}");
            wrong("tls.key_file", &self.key, why)
        })?;
        let [rest, grpc] = PROTOCOLS.map(|protocol| {
            let mut config = config.clone();
            config.alpn_protocols = vec![protocol.to_vec()];
            Arc::new(config)
        });
        Ok(Configs { rest, grpc })
    }
}

/// A file with what it holds.
///
/// # Errors
/// It cannot be read.
pub(super) fn read(setting: &'static str, file: &Path) -> Result<(PathBuf, Vec<u8>), Wrong> {
    let file = file.to_owned();
    match std::fs::read(&file) {
        Ok(text) => Ok((file, text)),
        Err(error) => Err(Wrong { setting, file, why: format!("cannot be read: {error}") }),
    }
}

fn verifier(pem: &[u8], provider: Arc<crypto::CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let trusted = Arc::new(authorities(pem)?);
    WebPkiClientVerifier::builder_with_provider(trusted, provider).build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;

    fn pair() -> (String, String) {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (cert.pem(), signing_key.serialize_pem())
    }

    fn material(cert: &str, key: &str, client_ca: Option<&str>) -> Material {
        let held = |name: &str, text: &str| (PathBuf::from(name), text.as_bytes().to_vec());
        Material {
            cert: held("tls.crt", cert),
            key: held("tls.key", key),
            client_ca: client_ca.map(|ca| held("ca.crt", ca)),
        }
    }

    #[test]
    fn each_door_speaks_its_own_protocol() {
        let (cert, key) = pair();
        let configs = material(&cert, &key, Some(&cert)).configs().ok().unwrap();
        assert_eq!(configs.rest.alpn_protocols, [b"http/1.1"]);
        assert_eq!(configs.grpc.alpn_protocols, [b"h2"]);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_its_setting_and_without_its_text() {
        let ((cert, key), (_, other)) = (pair(), pair());
        let refused = |material: Material| material.configs().err().unwrap().to_string();
        for (material, beginning) in [
            (material("", &key, None), "tls.cert_file: tls.crt holds no certificate"),
            (material(&cert, "hunter2", None), "tls.key_file: tls.key holds no private key in PEM"),
            (material(&cert, &other, None), "tls.key_file: tls.key is not the private key of the certificate"),
            (material(&cert, &key, Some("hunter2")), "tls.client_ca_file: ca.crt holds no certificate"),
        ] {
            let refused = refused(material);
            assert!(refused.starts_with(beginning) && !refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let tls = settings::Tls {
            cert_file: Some("/nowhere/tls.crt".into()),
            key_file: Some("/nowhere/tls.key".into()),
            client_ca_file: None,
        };
        let wrong = Material::read(&tls).err().unwrap();
        assert!(wrong.to_string().starts_with("tls.cert_file: /nowhere/tls.crt cannot be read: "), "{wrong}");
        assert!(matches!(Material::read(&settings::Tls::default()), Ok(None)));
    }
}
