//! What holds of sessions over several replicas that share a store, under virtual time (durability.md 2.2; invariants L1,
//! L2, S1, S2, S3).

mod forwarding;
mod lives;
mod network;
mod owning;
mod random;
mod words;

use std::collections::{BTreeSet, HashMap};
use std::future::ready;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_core::credentials::CredentialKey;
use caribou_core::ids::{BootId, Scope, VolumeId};
use caribou_core::result::{AgentResult, Snapshot, Stamp};
use caribou_ports::BoxFuture;
use caribou_ports::store::{Replica, Replicas as _, ThreadVolumes as _};
use caribou_ports::workspace::{ThreadFolder, ThreadFolderError, ThreadFolders, Told};
use caribou_runtime::{Cluster, Options, Outside, Runtime};
use caribou_store::Memory;

use self::network::Network;
use self::random::{Alive, Counting};
use crate::fake::{Fake, server};
use crate::tasks::until;

/// Replicas of one cluster, each with children of its own.
struct World {
    store: Memory,
    network: Network,
    folders: Folders,
    alive: Alive,
    replicas: Vec<Member>,
}

/// One of them.
struct Member {
    boot: String,
    runtime: Runtime,
    fake: Arc<Fake>,
}

impl World {
    async fn plain(boots: &[&str]) -> Self {
        Self::of(boots, |_| Options::default()).await
    }

    async fn of(boots: &[&str], options: impl Fn(&str) -> Options) -> Self {
        Self::with(boots, options, &[]).await
    }

    /// With a volume of its own for each of `volumes`, which has its name.
    async fn with(boots: &[&str], options: impl Fn(&str) -> Options, volumes: &[&str]) -> Self {
        let mut world = Self {
            store: Memory::default(),
            network: Network::default(),
            folders: Folders::default(),
            alive: Alive::default(),
            replicas: Vec::new(),
        };
        for boot in boots.iter().copied() {
            let volume = volumes.contains(&boot).then(|| VolumeId::from(boot));
            let member = world.begun(boot, options(boot), volume).await;
            world.replicas.push(member);
        }
        world.are_known().await;
        world
    }

    /// A replica of this life.
    async fn begun(&self, boot: &str, options: Options, volume: Option<VolumeId>) -> Member {
        let fake = Arc::new(Fake::default());
        let on_record = Replica { address: Some(format!("{boot}:1")), ..Replica::alone(boot.into(), "h", "0") };
        self.store.begin(on_record).await.unwrap();
        if let Some(volume) = &volume {
            self.store.mount(boot.into(), volume.clone()).await.unwrap();
        }
        let cluster = Cluster {
            store: Arc::new(self.store.clone()),
            peers: Arc::new(self.network.clone()),
            credentials: CredentialKey::new([7; 32]),
            vault: None,
            volume,
        };
        let connector = Counting { fake: fake.clone(), alive: self.alive.clone() };
        let outside = Outside {
            cluster: Some(cluster),
            folders: Some(Arc::new(self.folders.clone())),
            ..Outside::from(Arc::new(connector))
        };
        let servers = vec![server("s", |_| ())];
        let runtime = Runtime::start(servers, options, outside, BootId::from(boot)).await.unwrap();
        self.network.plug(boot, runtime.clone());
        Member { boot: boot.to_owned(), runtime, fake }
    }

    async fn are_known(&self) {
        for member in &self.replicas {
            until("all know one another", async || {
                let seen = member.runtime.peers().map(|view| view.alive()).unwrap_or_default();
                let sees = |other: &Member| seen.iter().any(|boot| boot.as_str() == other.boot);
                self.replicas.iter().all(sees)
            })
            .await;
        }
    }

    /// Stops a replica in order, and begins another life in its place.
    async fn roll(&mut self, at: usize, boot: &str) {
        let member = &self.replicas[at];
        member.runtime.drain(Duration::from_secs(25)).await;
        member.runtime.stop().await;
        self.store.end(member.boot.as_str().into()).await.unwrap();
        self.network.unplug(&member.boot);
        self.replicas[at] = self.begun(boot, Options::default(), None).await;
        self.are_known().await;
    }
}

/// Folders of threads, some of which have a file.
#[derive(Clone, Default)]
struct Folders(Arc<Mutex<BTreeSet<String>>>);

impl Folders {
    fn write(&self, thread: &str) {
        self.0.lock().unwrap().insert(thread.to_owned());
    }
}

impl ThreadFolders for Folders {
    fn prepare(&self, _: &Scope) -> BoxFuture<'static, Result<ThreadFolder, ThreadFolderError>> {
        let workspace = PathBuf::from("/test");
        Box::pin(ready(Ok(ThreadFolder { temp: Ok(workspace.clone()), workspace })))
    }

    fn snapshot(&self, scope: &Scope) -> BoxFuture<'static, Snapshot> {
        let is_full = self.0.lock().unwrap().contains(scope.thread.as_str());
        let file = is_full.then(|| (PathBuf::from("notes"), Stamp { mtime_ns: 1, size: 1 }));
        Box::pin(ready(Snapshot { files: Some(file.into_iter().collect::<HashMap<_, _>>()) }))
    }

    fn translate(&self, _: &Scope, told: Told) -> BoxFuture<'static, Option<AgentResult>> {
        Box::pin(ready(Some(told.result)))
    }
}
