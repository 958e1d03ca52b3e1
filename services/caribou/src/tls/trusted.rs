//! Whom we trust beside the system's authorities, and by which way requests leave.

use std::path::Path;

use anyhow::Context as _;
use caribou_egress::{WayOut, WayOutOptions};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::settings::Network;

/// Reads a bundle of certificates, as PEM; `source` names it in errors.
///
/// # Errors
/// The file cannot be read, holds no certificate, or one that cannot be trusted.
pub(crate) fn read_authorities(source: &str, file: &Path) -> anyhow::Result<Vec<u8>> {
    let name = file.display();
    let pem = std::fs::read(file).with_context(|| format!("{source}: cannot read {name}"))?;
    authorities(&pem).map_err(|why| anyhow::anyhow!("{source}: {name} {why}"))?;
    Ok(pem)
}

/// The certificates of a bundle.
///
/// # Errors
/// In words, as the end of a sentence that names the file.
pub(super) fn authorities(pem: &[u8]) -> Result<RootCertStore, &'static str> {
    let mut trusted = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| "is not PEM")?;
        trusted.add(certificate).map_err(|_| "holds something that is no certificate of an authority")?;
    }
    if trusted.is_empty() { Err("holds no certificate") } else { Ok(trusted) }
}

/// The way out that the settings and the environment lead to.
///
/// # Errors
/// The file of certificates is wrong, or the environment names a proxy that cannot be one.
pub(crate) fn way_out(network: &Network) -> anyhow::Result<WayOut> {
    let ca_pem = match &network.ca_file {
        Some(file) => read_authorities("network.ca_file", file)?,
        None => Vec::new(),
    };
    let proxy = network.proxy.as_ref().map(|proxy| proxy.address().clone());
    Ok(WayOut::new(&WayOutOptions { ca_pem, proxy }, &|name| std::env::var(name).ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_bundle_is_named_with_its_setting() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |text: Option<&str>| {
            let file = folder.path().join("ca.pem");
            if let Some(text) = text {
                std::fs::write(&file, text).unwrap();
            }
            let refused = read_authorities("network.ca_file", &file).unwrap_err().to_string();
            assert!(refused.starts_with("network.ca_file: ") && refused.contains("ca.pem"), "{refused}");
            refused
        };
        assert!(refused(None).contains("cannot read"));
        assert!(refused(Some("")).ends_with("holds no certificate"));
        let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        assert!(refused(Some(broken)).ends_with("is not PEM"));
        let other = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(refused(Some(other)).ends_with("no certificate of an authority"));
    }
}
