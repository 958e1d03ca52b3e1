//! An issuer: makes keys, signs tokens, publishes its key set in a file or over HTTP.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caribou_core::config::Secret;
use caribou_core::identity::{ClaimNames, Principal};
use caribou_identity::{ALGORITHMS, JwtCallers, JwtRules, KeySource};
use caribou_ports::identity::{Authenticator as _, Unauthenticated};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::Url;

pub(crate) const ISSUER: &str = "https://issuer.example";
pub(crate) const AUDIENCE: &str = "caribou";

/// PKCS8 of an Ed25519 key but for its 32 bytes (RFC 8410, section 7).
const ED25519: &[u8] = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/// The same of a P-256 key (RFC 5958, RFC 5915).
const P256: &[u8] = b"\x30\x41\x02\x01\x00\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\
    \x01\x07\x04\x27\x30\x25\x02\x01\x01\x04\x20";

/// One key of the issuer.
pub(crate) struct Key {
    kid: String,
    algorithm: Algorithm,
    secret: EncodingKey,
}

impl Key {
    pub(crate) fn new(kid: &str, algorithm: Algorithm) -> Self {
        let mut random = [0; 32];
        getrandom::fill(&mut random).unwrap();
        // Below the order of the curve.
        random[0] &= 0x7f;
        let secret = match algorithm {
            Algorithm::EdDSA => EncodingKey::from_ed_der(&[ED25519, &random].concat()),
            Algorithm::ES256 => EncodingKey::from_ec_der(&[P256, &random].concat()),
            // Finding primes takes minutes without optimisation, so this one was found before; it signs nothing else.
            _ => EncodingKey::from_rsa_der(&STANDARD.decode(include_str!("rsa_key.txt").replace('\n', "")).unwrap()),
        };
        Self { kid: kid.to_owned(), algorithm, secret }
    }

    /// As it stands in a key set.
    pub(crate) fn public(&self) -> Value {
        let mut key = serde_json::to_value(Jwk::from_encoding_key(&self.secret, self.algorithm).unwrap()).unwrap();
        key["kid"] = self.kid.clone().into();
        key["use"] = "sig".into();
        key
    }

    /// A token with these claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_as(Header { kid: Some(self.kid.clone()), ..Header::new(self.algorithm) }, claims)
    }

    pub(crate) fn sign_as(&self, header: Header, claims: &Value) -> String {
        encode(&header, claims, &self.secret).unwrap()
    }
}

/// Seconds of the Unix epoch, so many from now.
pub(crate) fn at(offset: i64) -> i64 {
    i64::try_from(get_current_timestamp()).unwrap() + offset
}

/// Good claims, with others laid over them; null takes one away.
pub(crate) fn claims(other: Value) -> Value {
    let mut claims = json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": at(3_600), "roles": ["agent"]});
    for (name, value) in other.as_object().unwrap() {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    claims
}

pub(crate) fn key_set(keys: &[&Key]) -> String {
    json!({ "keys": keys.iter().map(|key| key.public()).collect::<Vec<_>>() }).to_string()
}

pub(crate) fn rules() -> JwtRules {
    JwtRules {
        issuer: ISSUER.to_owned(),
        audience: vec![AUDIENCE.to_owned(), "other".to_owned()],
        leeway: Duration::from_secs(30),
        algorithms: ALGORITHMS.map(str::to_owned).into(),
        claims: ClaimNames { user: "sub".to_owned(), roles: "roles".to_owned() },
    }
}

pub(crate) async fn callers(source: KeySource, rules: JwtRules) -> JwtCallers {
    // Fails only when there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    JwtCallers::start(source, rules, reqwest::Client::builder().no_proxy()).await.unwrap()
}

/// Callers with tokens of these keys, read from a file.
pub(crate) async fn callers_with(folder: &Path, keys: &[&Key], rules: JwtRules) -> JwtCallers {
    let file = folder.join("keys.json");
    std::fs::write(&file, key_set(keys)).unwrap();
    callers(KeySource::File(file), rules).await
}

pub(crate) async fn present(callers: &JwtCallers, token: &str) -> Result<Principal, Unauthenticated> {
    callers.authenticate(Some(Secret::new(token))).await
}

/// What a refusal says after its opening.
pub(crate) async fn refusal(callers: &JwtCallers, token: &str) -> String {
    match present(callers, token).await {
        Err(Unauthenticated::Refused(why)) => {
            assert!(!why.contains(token) && !why.contains("hunter2"), "{why}");
            why.replace("the token is not believed: ", "")
        }
        other => panic!("not refused but {other:?}"),
    }
}

/// The key set over HTTP.
pub(crate) struct Published {
    pub(crate) url: Url,
    /// The whole answer; empty = the connection is cut.
    pub(crate) answer: Arc<Mutex<String>>,
    pub(crate) asked: Arc<AtomicUsize>,
}

impl Published {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/keys", listener.local_addr().unwrap())).unwrap();
        let published = Self { url, answer: Arc::default(), asked: Arc::default() };
        let (answer, asked) = (published.answer.clone(), published.asked.clone());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = [0; 4_096];
                let _ = stream.read(&mut head).await;
                asked.fetch_add(1, Ordering::SeqCst);
                let answer = answer.lock().unwrap().clone();
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        published
    }

    pub(crate) fn publish(&self, keys: &[&Key]) {
        self.answer_with("200 OK", &key_set(keys));
    }

    pub(crate) fn answer_with(&self, status: &str, body: &str) {
        let length = body.len();
        *self.answer.lock().unwrap() =
            format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}
