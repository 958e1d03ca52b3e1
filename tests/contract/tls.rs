//! Encryption of both doors: certificates shown, followed and demanded.

use std::path::PathBuf;
use std::time::Duration;

use caribou_proto::v1;
use caribou_proto::v1::tool_service_client::ToolServiceClient;
use caribou_tests::{Authority, Caribou, Certificate, Home, Setup, StdioFake, eventually};
use serde_json::json;
use tonic::transport::{ClientTlsConfig, Endpoint};

const SOON: Duration = Duration::from_secs(20);

/// Writes a pair where the settings of [`encrypted`] expect it.
fn renew(home: &Home, certificate: &Certificate) {
    home.write("tls.crt", &certificate.cert);
    home.write("tls.key", &certificate.key);
}

/// A setup whose doors show `certificate`.
fn encrypted(certificate: &Certificate) -> Setup {
    let setup = Setup::new().variable("CARIBOU_GRPC_LISTEN", "127.0.0.1:0");
    renew(setup.home(), certificate);
    let path = |name: &str| setup.home().join(name).display().to_string();
    let (cert, key) = (path("tls.crt"), path("tls.key"));
    setup.variable("CARIBOU_TLS_CERT_FILE", &cert).variable("CARIBOU_TLS_KEY_FILE", &key)
}

/// A client of REST that trusts only this authority, and shows a certificate if it has one.
fn client(authority: &Authority, shown: Option<&Certificate>) -> reqwest::Client {
    // Installs the provider of the process.
    let _ = caribou_tests::network::http_client();
    let trusted = reqwest::Certificate::from_pem(authority.pem().as_bytes()).unwrap();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([trusted]);
    match shown {
        Some(pair) => {
            let pem = format!("{}{}", pair.cert, pair.key);
            client.identity(reqwest::Identity::from_pem(pem.as_bytes()).unwrap()).build().unwrap()
        }
        None => client.build().unwrap(),
    }
}

/// Lists tools over gRPC, trusting this authority.
async fn listed(caribou: &Caribou, authority: &Authority, shown: Option<&Certificate>) -> Result<usize, String> {
    let url = caribou.grpc_url().await.replacen("grpcs", "https", 1);
    let mut tls = ClientTlsConfig::new().ca_certificate(tonic::transport::Certificate::from_pem(authority.pem()));
    if let Some(pair) = shown {
        tls = tls.identity(tonic::transport::Identity::from_pem(&pair.cert, &pair.key));
    }
    let endpoint = Endpoint::from_shared(url).unwrap().tls_config(tls).unwrap();
    let channel = endpoint.connect().await.map_err(|error| format!("{error:?}"))?;
    let listed = ToolServiceClient::new(channel).list_tools(v1::ListToolsRequest::default()).await;
    listed.map(|listed| listed.into_inner().tools.len()).map_err(|status| format!("{status:?}"))
}

/// Whether REST answers a client that trusts this authority.
async fn answers(caribou: &Caribou, client: &reqwest::Client) -> bool {
    let asked = client.get(format!("{}/healthz", caribou.url())).send().await;
    asked.is_ok_and(|answer| answer.status() == 200)
}

#[tokio::test]
async fn both_doors_show_the_certificate() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let setup = encrypted(&authority.sign());
    let ca = setup.home().write("ca.pem", authority.pem());
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "echo": ["default"] } }));
    let caribou = setup.server("fake", fake.entry()).client(client(&authority, None)).start().await;
    assert!(caribou.url().starts_with("https://127.0.0.1:"), "{}", caribou.url());
    assert!(caribou.grpc_url().await.starts_with("grpcs://127.0.0.1:"));
    assert_eq!(caribou.tool_names().await, ["fake_echo"]);
    assert_eq!(listed(&caribou, &authority, None).await, Ok(1));
    assert!(!answers(&caribou, &client(&stranger, None)).await);
    assert!(listed(&caribou, &stranger, None).await.is_err());

    let asking = Setup::new();
    let command = |more: &[&str]| {
        let mut arguments = vec!["tools", "list", "--json", "--server", caribou.url()];
        arguments.extend(more);
        asking.command(&arguments)
    };
    let distrusting = command(&[]).output().await.unwrap();
    assert!(!distrusting.status.success() && distrusting.stdout.is_empty());
    let trusting = command(&["--ca", ca.to_str().unwrap()]).output().await.unwrap();
    assert!(String::from_utf8_lossy(&trusting.stdout).contains("fake_echo"), "{trusting:?}");
}

#[tokio::test]
async fn a_renewed_certificate_holds_without_a_restart() {
    let (old, new) = (Authority::new(), Authority::new());
    let caribou = encrypted(&old.sign()).client(client(&old, None)).start().await;
    assert!(answers(&caribou, &client(&old, None)).await && listed(&caribou, &old, None).await.is_ok());
    // Half of a renewal does not fit and changes nothing.
    let renewed = new.sign();
    caribou.home().write("tls.crt", &renewed.cert);
    eventually(SOON, "a warning", async || caribou.log().contains("tls.key is not the private key").then_some(()))
        .await;
    assert!(answers(&caribou, &client(&old, None)).await && listed(&caribou, &old, None).await.is_ok());
    renew(caribou.home(), &renewed);
    eventually(SOON, "the new certificate", async || answers(&caribou, &client(&new, None)).await.then_some(())).await;
    assert!(listed(&caribou, &new, None).await.is_ok());
    assert!(!answers(&caribou, &client(&old, None)).await && listed(&caribou, &old, None).await.is_err());
    assert_eq!(caribou.log().matches("is not the private key").count(), 1, "told once");
}

#[tokio::test]
async fn callers_must_show_a_certificate_where_it_is_demanded() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let setup = encrypted(&ours.sign());
    let ca = setup.home().write("callers.pem", theirs.pem()).display().to_string();
    let known = theirs.sign();
    let setup = setup.variable("CARIBOU_TLS_CLIENT_CA_FILE", &ca).client(client(&ours, Some(&known)));
    let caribou = setup.start().await;
    assert!(answers(&caribou, &client(&ours, Some(&known))).await);
    assert_eq!(listed(&caribou, &ours, Some(&known)).await, Ok(0));
    assert!(!answers(&caribou, &client(&ours, None)).await);
    assert!(listed(&caribou, &ours, None).await.is_err());
    let stranger = ours.sign();
    assert!(!answers(&caribou, &client(&ours, Some(&stranger))).await);
    assert!(listed(&caribou, &ours, Some(&stranger)).await.is_err());
}

#[tokio::test]
async fn files_that_cannot_be_used_refuse_the_start_by_name() {
    let authority = Authority::new();
    let said = async |setup: &Setup, verb: &[&str]| {
        let refused = setup.command(verb).output().await.unwrap();
        let text = [refused.stdout.clone(), refused.stderr.clone()].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(!refused.status.success() && !text.contains("LISTENING"), "{text}");
        text
    };
    for (file, text, expected) in [
        ("tls.crt", "", "tls.crt holds no certificate"),
        ("tls.key", "hunter2", "tls.key holds no private key"),
        ("tls.key", &authority.sign().key, "tls.key is not the private key of the certificate"),
    ] {
        let setup = encrypted(&authority.sign());
        let _: PathBuf = setup.home().write(file, text);
        for verb in [&["serve", "--listen", "127.0.0.1:0"][..], &["check"]] {
            let said = said(&setup, verb).await;
            assert!(said.contains(expected) && !said.contains("hunter2"), "{verb:?}: {said}");
        }
    }
    let lonely = Setup::new().variable("CARIBOU_TLS_CERT_FILE", "tls.crt");
    let said = said(&lonely, &["serve", "--listen", "127.0.0.1:0"]).await;
    assert!(said.contains("$.tls.key_file"), "{said}");
}
