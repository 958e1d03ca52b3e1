//! When the files of a thread are looked at, and that neither they nor a disk that hangs cost a call its answer, under
//! virtual time (contract 4.6, 4.7; invariant B1).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fake::{Fake, FakeConnector, call, remote, server};
use caribou_core::config::{ServerConfig, Transport};
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Scope};
use caribou_core::result::{AgentResult, Block, Snapshot};
use caribou_ports::BoxFuture;
use caribou_ports::workspace::{ThreadFolder, ThreadFolderError, ThreadFolders, Told};
use caribou_runtime::{CallTool, CalledTool, Options, Outside, Runtime, Shape, VerbError};

/// Folders that exist, hang, or cannot be made.
#[derive(Default)]
struct FakeFolders {
    hanging: bool,
    no_workspace: bool,
    no_temp: bool,
    prepared: AtomicUsize,
    looks: AtomicUsize,
}

impl FakeFolders {
    async fn look<T>(hanging: bool, answer: T) -> T {
        if hanging { std::future::pending().await } else { answer }
    }
}

impl ThreadFolders for FakeFolders {
    fn prepare(&self, _: &Scope) -> BoxFuture<'static, Result<ThreadFolder, ThreadFolderError>> {
        self.prepared.fetch_add(1, Ordering::SeqCst);
        let unusable = ThreadFolderError { path: "/w".into(), reason: "full".into() };
        let temp = if self.no_temp { Err(unusable.clone()) } else { Ok("/w/.mcp/tmp".into()) };
        let folder = if self.no_workspace { Err(unusable) } else { Ok(ThreadFolder { workspace: "/w".into(), temp }) };
        Box::pin(async { folder })
    }

    fn snapshot(&self, _: &Scope) -> BoxFuture<'static, Snapshot> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        Box::pin(Self::look(self.hanging, Snapshot::default()))
    }

    fn translate(&self, _: &Scope, told: Told) -> BoxFuture<'static, Option<AgentResult>> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        let mut translated = told.result;
        translated.content.push(Block::Text { text: format!("<system> {:?}", told.cwd) });
        Box::pin(Self::look(self.hanging, Some(translated)))
    }
}

async fn called(
    folders: &Arc<FakeFolders>,
    change: impl FnOnce(&mut ServerConfig),
    shape: Shape,
) -> Result<CalledTool, VerbError> {
    let connector = Arc::new(FakeConnector(Arc::new(Fake::default())));
    let outside = Outside { folders: Some(folders.clone()), ..Outside::from(connector) };
    let servers = vec![server("s", change)];
    let runtime = Runtime::start(servers, Options::default(), outside, BootId::from("boot")).await.unwrap();
    runtime.call_tool(CallTool { shape, ..call("s_count", "t") }).await
}

/// The server runs in a folder of its own.
fn own_folder(config: &mut ServerConfig) {
    if let Transport::Stdio(stdio) = &mut config.transport {
        stdio.cwd = Some("/own".into());
    }
}

/// The server keeps its state in a file of the thread's folder.
fn own_folder_and_thread_file(config: &mut ServerConfig) {
    own_folder(config);
    if let Transport::Stdio(stdio) = &mut config.transport {
        stdio.thread_files = vec![("DB".into(), PathBuf::from("state.db"))];
    }
}

const AGENT: Shape = Shape::Agent { neutralise: true };

#[tokio::test(start_paused = true)]
async fn files_are_looked_at_only_for_children_and_only_when_an_agent_asks() {
    // Contract 4.6, non-stdio; 4.7.
    let folders = Arc::new(FakeFolders::default());
    let raw = called(&folders, |_| (), Shape::Raw).await.unwrap();
    assert!(raw.agent.is_none());
    assert_eq!((folders.prepared.load(Ordering::SeqCst), folders.looks.load(Ordering::SeqCst)), (1, 0));
    let of_remote = called(&folders, remote, AGENT).await.unwrap();
    assert_eq!(of_remote.agent.unwrap().content.len(), 1);
    assert_eq!((folders.prepared.load(Ordering::SeqCst), folders.looks.load(Ordering::SeqCst)), (1, 0));
    let agent = called(&folders, own_folder, AGENT).await.unwrap().agent.unwrap();
    assert_eq!(folders.looks.load(Ordering::SeqCst), 2);
    let expected = Block::Text { text: r#"&lt;system&gt; Some("/own")"#.into() };
    assert_eq!(agent.content.last(), Some(&expected), "what translating brought in is made harmless too");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_hangs_costs_translations_and_never_the_answer() {
    // Contract 4.7, off the loop.
    let folders = Arc::new(FakeFolders { hanging: true, ..FakeFolders::default() });
    let called = called(&folders, |_| (), AGENT).await.unwrap();
    let expected = [Block::Other { text: called.result.get().to_owned() }];
    assert_eq!(called.agent.unwrap().content, expected);
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_without_a_temporary_folder_but_not_where_threads_would_share_files() {
    // Contract 4.6, failure to prepare.
    let no_temp = Arc::new(FakeFolders { no_temp: true, ..FakeFolders::default() });
    assert!(called(&no_temp, |_| (), Shape::Raw).await.is_ok());
    let nothing = Arc::new(FakeFolders { no_workspace: true, ..FakeFolders::default() });
    assert!(called(&nothing, own_folder, Shape::Raw).await.is_ok());
    for change in [own_folder_and_thread_file, |_: &mut ServerConfig| ()] {
        let error = called(&nothing, change, Shape::Raw).await.map(drop).unwrap_err();
        assert_eq!(error.code, Code::Unavailable);
        assert!(error.detail.contains("/w") && error.detail.contains("threads.root"), "{error}");
    }
}
