//! A replica that follows a document in memory, as the tests of configuration need it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use caribou_core::config::{self, ETag, IfMatch, Source};
use caribou_core::ids::{BootId, Scope};
use caribou_core::launch::Allowlist;
use caribou_ports::BoxFuture;
use caribou_ports::config_source::{ConfigSource, ConfigSourceError, ConfigText, Edit};
use caribou_runtime::{Configuration, Options, Outside, Runtime};
use serde_json::{Value, json};

use crate::fake::{Fake, FakeConnector, anybody, call};
use crate::intercepted::Scripts;

/// A document in memory.
#[derive(Default)]
pub(crate) struct Memory {
    text: Mutex<Vec<u8>>,
    changed: AtomicBool,
}

impl Memory {
    pub(crate) fn edit(&self, text: impl Into<Vec<u8>>) {
        *self.text.lock().unwrap() = text.into();
        self.changed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn stored(&self) -> ConfigText {
        let text = self.text.lock().unwrap().clone();
        ConfigText { file: PathBuf::from("/etc/caribou/extensions_config.json"), etag: ETag::of(&text), text }
    }
}

impl ConfigSource for Memory {
    fn has_changed(&self) -> bool {
        self.changed.load(Ordering::SeqCst)
    }

    fn load(&self) -> BoxFuture<'static, Result<Option<ConfigText>, ConfigSourceError>> {
        self.changed.store(false, Ordering::SeqCst);
        let stored = self.stored();
        Box::pin(async { Ok(Some(stored)) })
    }

    fn replace(&self, condition: IfMatch, edit: Edit) -> BoxFuture<'static, Result<ConfigText, ConfigSourceError>> {
        let stored = self.stored();
        let replaced = if condition.allows(Some(stored.etag)) {
            edit(&stored.text).map_err(ConfigSourceError::Refused).map(|text| {
                *self.text.lock().unwrap() = text;
                self.stored()
            })
        } else {
            Err(ConfigSourceError::Stale { etag: stored.etag })
        };
        Box::pin(async { replaced })
    }

    fn changed(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

pub(crate) struct Setting {
    pub(crate) fake: Arc<Fake>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) interceptors: Arc<Scripts>,
    pub(crate) runtime: Runtime,
}

impl Setting {
    pub(crate) async fn new(servers: Value) -> Self {
        Self::with(servers, Options::default()).await
    }

    pub(crate) async fn with(servers: Value, options: Options) -> Self {
        Self::within(servers, options, |outside| outside).await
    }

    /// With more of the world than servers and a document.
    pub(crate) async fn within(servers: Value, options: Options, world: impl FnOnce(Outside) -> Outside) -> Self {
        let fake = Arc::new(Fake::default());
        let memory = Arc::new(Memory::default());
        memory.edit(document(&servers));
        let stored = memory.load().await.unwrap().unwrap();
        let source = Source { file: &stored.file, text: &stored.text };
        let parsed = config::parse(&source, &|_| None).unwrap();
        let configuration = Configuration {
            source: memory.clone(),
            variables: Arc::new(|_| None),
            document: parsed.clone(),
            file: stored.file.clone(),
            allowlist: Allowlist::default(),
            unsupported: Default::default(),
            resets: None,
        };
        let interceptors = Arc::new(Scripts::default());
        let outside = Outside {
            configuration: Some(configuration),
            interceptors: Some(interceptors.clone()),
            ..Outside::from(Arc::new(FakeConnector(fake.clone())))
        };
        let boot = BootId::from("boot");
        let runtime = Runtime::start(parsed.servers, options, world(outside), boot).await.unwrap();
        Self { fake, memory, interceptors, runtime }
    }

    /// Opens one session with each server, and says which child answers.
    pub(crate) async fn pids(&self, servers: &[&str]) -> BTreeMap<String, String> {
        let mut pids = BTreeMap::new();
        for server in servers {
            let called = self.runtime.call_tool(call(&format!("{server}_count"), "t")).await.unwrap();
            let pid = called.result.get().split(',').next().unwrap().to_owned();
            pids.insert((*server).to_owned(), pid);
        }
        pids
    }

    pub(crate) async fn servers_shown(&self) -> BTreeSet<String> {
        let listed = self.runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
        listed.tools.iter().map(|tool| tool.server.to_string()).collect()
    }
}

pub(crate) fn document(servers: &Value) -> Vec<u8> {
    json!({ "mcpServers": servers }).to_string().into_bytes()
}
