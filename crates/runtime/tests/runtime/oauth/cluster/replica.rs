//! The replicas, and what befalls all of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_core::config::{Secret, Source, parse};
use caribou_core::ids::{BootId, ServerName};
use caribou_ports::BoxFuture;
use caribou_ports::access_token::{AccessToken, AccessTokens, NoToken};
use caribou_ports::mcp::{Connector, OpenError, OpenSession, Session};
use caribou_ports::store::{OAuthChains as _, Replica, Replicas as _, StoredChain, Wakeups};
use caribou_ports::vault::{NotOpened, Opened, Place, Vault};
use caribou_runtime::{ChainTimes, Options, Outside, Runtime, StoredChains};
use caribou_store::Memory;
use serde_json::{Value, json};

use super::mutant::Mutant;
use super::provider::Provider;
use super::shared_store::{Ailments, SharedStore};
use crate::borders::Borders;
use crate::fake::{Fake, FakeConnector, call};
use crate::followed::document;
use crate::oauth::endpoint::entry;

/// Those of the product.
pub(in crate::oauth) const TIMES: ChainTimes = ChainTimes {
    lease: Duration::from_secs(30),
    renew: Duration::from_secs(10),
    margin: Duration::from_secs(5),
    abandoned_after: Duration::from_secs(120),
    last_word: Duration::from_secs(10),
};

/// Encrypts nothing, but knows places and keys.
struct Plain(&'static str);

impl Vault for Plain {
    fn seal(&self, place: &Place, secret: &Secret) -> Vec<u8> {
        format!("{}\n{place:?}\n{}", self.0, secret.expose()).into_bytes()
    }

    fn open(&self, place: &Place, sealed: &[u8]) -> Result<Opened, NotOpened> {
        let text = String::from_utf8_lossy(sealed).into_owned();
        let text = text.strip_prefix(&format!("{}\n", self.0)).ok_or(NotOpened::UnknownKey)?;
        let text = text.strip_prefix(&format!("{place:?}\n")).ok_or(NotOpened::Damaged)?;
        Ok(Opened { secret: Secret::new(text), is_current: true })
    }
}

/// A connector that remembers the tokens it was given last.
struct Remembering {
    inner: Arc<dyn Connector>,
    given: Arc<Mutex<Option<Arc<dyn AccessTokens>>>>,
}

impl Connector for Remembering {
    fn open(&self, request: OpenSession) -> BoxFuture<'static, Result<Arc<dyn Session>, OpenError>> {
        self.given.lock().unwrap().clone_from(&request.credentials.tokens);
        self.inner.open(request)
    }
}

/// Replicas that share a store and a provider.
pub(in crate::oauth) struct Cluster {
    pub(in crate::oauth) store: Memory,
    pub(in crate::oauth) provider: Provider,
    ailments: Arc<Ailments>,
    mutant: Option<Mutant>,
    lives: AtomicUsize,
    /// What replicas tell each other; the histories do without, since hints come at times of their own.
    hints: Option<Arc<dyn Wakeups>>,
}

/// One life of a replica.
pub(in crate::oauth) struct Member {
    pub(in crate::oauth) runtime: Runtime,
    pub(in crate::oauth) borders: Arc<Borders<Mutant>>,
    boot: BootId,
    given: Arc<Mutex<Option<Arc<dyn AccessTokens>>>>,
}

impl Cluster {
    /// No replica yet; access tokens live for so long.
    pub(in crate::oauth) fn new(life: Duration, mutant: Option<Mutant>) -> Self {
        let store = Memory::default();
        let provider = Provider::new(store.clone(), life);
        Self { store, provider, ailments: Arc::default(), mutant, lives: AtomicUsize::new(0), hints: None }
    }

    /// From here on replicas tell each other what they have stored.
    pub(in crate::oauth) fn with_hints(mut self) -> Self {
        self.hints = Some(Arc::new(self.store.clone()));
        self
    }

    /// A replica more, with this `oauth` changed.
    pub(in crate::oauth) async fn member_with(&self, oauth: Value, key: &'static str) -> Member {
        let life = self.lives.fetch_add(1, Ordering::SeqCst) + 1;
        let boot = BootId::from(format!("life-{life}").as_str());
        let borders = Arc::new(Borders::with(self.mutant));
        let on_record = Replica::alone(boot.clone(), "h", "1");
        self.store.begin(on_record).await.unwrap();
        let store =
            SharedStore { store: self.store.clone(), ailments: self.ailments.clone(), borders: borders.clone() };
        let text = document(&json!({"a": entry(oauth)}));
        let servers = parse(&Source { file: "/x.json".as_ref(), text: &text }, &|_| None).unwrap().servers;
        let given = Arc::default();
        let inner: Arc<dyn Connector> = Arc::new(FakeConnector(Arc::new(Fake::default())));
        let connector = Arc::new(Remembering { inner, given: Arc::clone(&given) });
        let outside = Outside {
            token_endpoint: Some(self.provider.seen_by(boot.as_str(), borders.clone())),
            oauth_chains: Some(StoredChains {
                store: Arc::new(store),
                vault: Arc::new(Plain(key)),
                wakeups: self.hints.clone(),
                times: TIMES,
            }),
            ..Outside::from(connector)
        };
        let runtime = Runtime::start(servers, Options::default(), outside, boot.clone()).await.unwrap();
        Member { runtime, borders, boot, given }
    }

    /// A replica more.
    pub(in crate::oauth) async fn member(&self) -> Member {
        self.member_with(json!({"refresh_skew_seconds": 0}), "key").await
    }

    /// The row.
    pub(in crate::oauth) async fn row(&self) -> StoredChain {
        self.store.load_chain(ServerName::from("a")).await.unwrap().unwrap()
    }

    /// The store answers nobody for so long.
    pub(in crate::oauth) fn store_away(&self, length: Duration) {
        self.ailments.away(length);
        self.provider.store_is_away(length);
    }

    /// The next commit is made, and whoever makes it does not hear so.
    pub(in crate::oauth) fn unclear_commit(&self) {
        self.ailments.unclear();
    }

    /// The next commit is acknowledged, and lost with its server: from here on nobody can be right.
    pub(in crate::oauth) fn lost_commit(&self) {
        self.ailments.lose_one();
        self.provider.excuse_anything();
    }

    /// It is on record that this life has ended.
    pub(in crate::oauth) async fn declare_dead(&self, boot: &BootId) {
        self.store.end(boot.clone()).await.unwrap();
    }
}

impl Member {
    /// What its sessions ask for tokens.
    pub(in crate::oauth) async fn tokens(&self) -> Arc<dyn AccessTokens> {
        self.runtime.call_tool(call("a_count", "t")).await.unwrap();
        self.given.lock().unwrap().clone().unwrap()
    }

    pub(in crate::oauth) async fn token(&self) -> Result<AccessToken, NoToken> {
        self.tokens().await.current().await
    }

    pub(in crate::oauth) fn boot(&self) -> &BootId {
        &self.boot
    }
}
