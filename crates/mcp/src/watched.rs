//! Resources that are watched in one legacy session (mcp.md 14.3): who hears of which, and what the server is asked
//! for.
//!
//! A URI that several watch is subscribed to once, and unsubscribed from when the last of them has gone; one exchange
//! of this kind runs at a time, so that the server hears them in the order in which they count. What the server refuses
//! is watched no more, and whoever watches is told what it grants, in the words of the modern era. A server that forgot
//! the session ends the watching: whoever still wants it begins again, and knows that something may have been missed.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caribou_core::raw::{Members, elements, text};
use caribou_ports::mcp::{CallError, Disconnect, Progress, ProgressSink, RawRequest};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{Mutex as Turn, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::channel::{Channel, RequestExtras};
use crate::wire::limits::COURTESY_WRITE;

/// What is watched in one session. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Watched(Arc<Book>);

#[derive(Default)]
struct Book {
    table: Mutex<Table>,
    /// Whose turn it is to speak with the server of it.
    turn: Turn<()>,
    /// Counts the sessions that the server forgot.
    lost: watch::Sender<u64>,
}

/// Bounded by the streams that clients may have open.
#[derive(Default)]
struct Table {
    last: u64,
    watchers: HashMap<u64, Watcher>,
    /// What the server was asked for.
    subscribed: BTreeSet<String>,
}

struct Watcher {
    uris: Vec<String>,
    sink: ProgressSink,
}

impl Watched {
    /// Watches the URIs that `request` names until the session ends or is forgotten. Dropping the future ends it.
    pub(crate) fn listen(
        &self,
        channel: Arc<dyn Channel>,
        over: CancellationToken,
        request: RawRequest,
    ) -> impl Future<Output = Result<Box<RawValue>, CallError>> + Send + use<> {
        let watched = self.clone();
        async move {
            let sink = request.progress.clone().unwrap_or_else(|| Arc::new(|_| {}));
            channel.keep_stream();
            let mut lost = watched.0.lost.subscribe();
            let watching = watched.enter(Arc::clone(&channel), wanted(&request.params), sink.clone());
            let granted = watching.subscribe(&request).await?;
            let told = json!({ "notifications": { "resourceSubscriptions": granted } });
            sink(Progress::Progress(Arc::from(to_raw_value(&told).unwrap_or_default())));
            tokio::select! {
                disconnect = channel.ended() => Err(CallError::Disconnected { disconnect, sent: true }),
                () = over.cancelled() => Err(closed()),
                _ = lost.changed() => Err(CallError::StreamEnded("the server forgot what was watched".to_owned())),
            }
        }
    }

    fn enter(&self, channel: Arc<dyn Channel>, uris: Vec<String>, sink: ProgressSink) -> Watching {
        let mut table = self.table();
        table.last += 1;
        let id = table.last;
        table.watchers.insert(id, Watcher { uris, sink });
        Watching { watched: self.clone(), channel, id }
    }

    /// Tells whoever watches the resource of a notice, or one that it is a part of.
    pub(crate) fn updated(&self, params: &RawValue) {
        let Some(uri) = Members::of(params).and_then(|params| text(params.get("uri")?).map(|uri| uri.into_owned()))
        else {
            return;
        };
        let told = Arc::<RawValue>::from(params.to_owned());
        let table = self.table();
        let hears = |watcher: &&Watcher| watcher.uris.iter().any(|watched| is_of(&uri, watched));
        let sinks: Vec<ProgressSink> = table.watchers.values().filter(hears).map(|all| all.sink.clone()).collect();
        drop(table);
        sinks.iter().for_each(|sink| sink(Progress::Message(told.clone())));
    }

    /// Nobody heard for a while: whatever is watched may have changed.
    pub(crate) fn missed(&self) {
        let uris: BTreeSet<String> = self.table().watchers.values().flat_map(|all| all.uris.clone()).collect();
        for uri in uris {
            if let Ok(params) = to_raw_value(&json!({ "uri": uri })) {
                self.updated(&params);
            }
        }
    }

    /// The server forgot the session, and with it what was watched.
    pub(crate) fn lost(&self) {
        self.table().subscribed.clear();
        self.0.lost.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Brings what the server was asked for in line with what is watched. What it refuses, and how.
    async fn settle(
        &self,
        channel: &dyn Channel,
        extras: &RequestExtras,
    ) -> Result<Vec<(String, CallError)>, CallError> {
        let _turn = self.0.turn.lock().await;
        let (missing, unwanted) = {
            let table = self.table();
            let wanted: BTreeSet<String> = table.watchers.values().flat_map(|all| all.uris.clone()).collect();
            let missing: Vec<String> = wanted.difference(&table.subscribed).cloned().collect();
            (missing, table.subscribed.difference(&wanted).cloned().collect::<Vec<_>>())
        };
        for uri in unwanted {
            self.table().subscribed.remove(&uri);
            let asked = ask(channel, "resources/unsubscribe", &uri, extras.clone());
            if !matches!(timeout(COURTESY_WRITE, asked).await, Ok(Ok(()))) {
                tracing::debug!("a server was not told that nobody watches a resource any more");
            }
        }
        let mut refused = Vec::new();
        for uri in missing {
            match ask(channel, "resources/subscribe", &uri, extras.clone()).await {
                Ok(()) => drop(self.table().subscribed.insert(uri)),
                Err(error @ CallError::Rpc { .. }) => refused.push((uri, error)),
                Err(error) => return Err(error),
            }
        }
        Ok(refused)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who watches, until it is dropped.
struct Watching {
    watched: Watched,
    channel: Arc<dyn Channel>,
    id: u64,
}

impl Watching {
    /// Those that the server grants; an error when it refuses all.
    async fn subscribe(&self, request: &RawRequest) -> Result<Vec<String>, CallError> {
        let extras = RequestExtras { headers: request.headers.clone(), ..RequestExtras::default() };
        let refused = self.watched.settle(&*self.channel, &extras).await?;
        let mut table = self.watched.table();
        let Table { watchers, subscribed, .. } = &mut *table;
        let Some(watcher) = watchers.get_mut(&self.id) else { return Ok(Vec::new()) };
        let theirs = refused.into_iter().find(|(uri, _)| watcher.uris.contains(uri));
        watcher.uris.retain(|uri| subscribed.contains(uri));
        match theirs {
            Some((_, error)) if watcher.uris.is_empty() => Err(error),
            _ => Ok(watcher.uris.clone()),
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.watched.table().watchers.remove(&self.id);
        let (watched, channel) = (self.watched.clone(), Arc::clone(&self.channel));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { watched.settle(&*channel, &RequestExtras::default()).await });
        }
    }
}

async fn ask(channel: &dyn Channel, method: &str, uri: &str, extras: RequestExtras) -> Result<(), CallError> {
    let params = to_raw_value(&json!({ "uri": uri })).map_err(|error| CallError::NotSent(error.to_string()))?;
    channel.request(method, Some(params), extras).await.map(drop)
}

/// The URIs that a request names.
fn wanted(params: &RawValue) -> Vec<String> {
    let filter = Members::of(params).and_then(|params| params.get("notifications")).and_then(Members::of);
    let uris = filter.as_ref().and_then(|filter| elements(filter.get("resourceSubscriptions")?));
    uris.into_iter().flatten().filter_map(|uri| text(uri).map(|uri| uri.into_owned())).collect()
}

/// Whether a resource is the one that is watched, or a part of it: the protocol lets servers tell of parts.
fn is_of(uri: &str, watched: &str) -> bool {
    let rest = uri.strip_prefix(watched);
    rest.is_some_and(|rest| rest.is_empty() || watched.ends_with('/') || rest.starts_with(['/', '?', '#']))
}

fn closed() -> CallError {
    let disconnect = Disconnect { reason: "the session was closed".to_owned(), exit: None, stderr: String::new() };
    CallError::Disconnected { disconnect, sent: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Says, Scripted};

    type Told = Arc<Mutex<Vec<String>>>;

    /// Somebody who watches `uris`, in the background; resolves once it does.
    async fn watch(
        watched: &Watched,
        channel: &Arc<Scripted>,
        uris: &[&str],
    ) -> (tokio::task::JoinHandle<Result<Box<RawValue>, CallError>>, Told) {
        let told = Told::default();
        let (heard, begun) = (told.clone(), Arc::new(tokio::sync::Notify::new()));
        let begins = begun.clone();
        let params = json!({ "notifications": { "resourceSubscriptions": uris } });
        let request = RawRequest {
            method: "subscriptions/listen".into(),
            params: to_raw_value(&params).unwrap(),
            headers: Vec::new(),
            progress: Some(Arc::new(move |report| match report {
                Progress::Progress(_) => begins.notify_one(),
                Progress::Message(params) => heard.lock().unwrap().push(params.get().to_owned()),
            })),
        };
        let listening = tokio::spawn(watched.listen(channel.clone(), CancellationToken::new(), request));
        begun.notified().await;
        (listening, told)
    }

    async fn sent(channel: &Scripted, count: usize) -> Vec<(String, String)> {
        let come = async {
            while channel.seen.lock().unwrap().len() < count {
                tokio::task::yield_now().await;
            }
        };
        timeout(COURTESY_WRITE * 4, come).await.expect("they are sent");
        channel.seen.lock().unwrap().clone()
    }

    #[tokio::test]
    async fn a_resource_that_two_watch_is_subscribed_to_once_and_left_with_the_last() {
        // mcp.md 14.3, reference counts.
        let channel = Scripted::new((0..4).map(|_| Says::Result("{}")));
        let watched = Watched::default();
        let (first, heard_first) = watch(&watched, &channel, &["a://1"]).await;
        let (second, heard_second) = watch(&watched, &channel, &["a://1", "a://2"]).await;
        for (uri, first, second) in [("a://1", 1, 1), ("a://2/part", 1, 2), ("a://3", 1, 2)] {
            watched.updated(&to_raw_value(&json!({ "uri": uri })).unwrap());
            assert_eq!(
                (heard_first.lock().unwrap().len(), heard_second.lock().unwrap().len()),
                (first, second),
                "{uri}"
            );
        }
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        second.abort();
        let sent = sent(&channel, 4).await;
        let methods: Vec<&str> = sent.iter().map(|(method, _)| &**method).collect();
        let (subscribe, unsubscribe) = ("resources/subscribe", "resources/unsubscribe");
        assert_eq!(methods, [subscribe, subscribe, unsubscribe, unsubscribe], "{sent:?}");
        assert_eq!((&*sent[0].1, &*sent[1].1), (r#"{"uri":"a://1"}"#, r#"{"uri":"a://2"}"#));
    }

    #[tokio::test]
    async fn what_the_server_refuses_is_not_granted_and_a_refusal_of_all_is_an_error() {
        // mcp.md §5, the granted subset.
        let refusal = || Says::Error(-32_602, "no");
        let channel = Scripted::new([Says::Result("{}"), refusal(), refusal(), Says::Result("{}")]);
        let watched = Watched::default();
        let listen = |uris: &[&str], told: Told| {
            let params = json!({ "notifications": { "resourceSubscriptions": uris } });
            let sink: ProgressSink = Arc::new(move |report| {
                if let Progress::Progress(params) = report {
                    told.lock().unwrap().push(params.get().to_owned());
                }
            });
            let params = to_raw_value(&params).unwrap();
            RawRequest { method: "subscriptions/listen".into(), params, headers: Vec::new(), progress: Some(sink) }
        };
        let told = Told::default();
        let over = CancellationToken::new();
        let some =
            tokio::spawn(watched.listen(channel.clone(), over.clone(), listen(&["a://1", "a://2"], told.clone())));
        let granted = async {
            while told.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        timeout(COURTESY_WRITE * 4, granted).await.expect("some is granted");
        let none = watched.listen(channel.clone(), over.clone(), listen(&["a://3"], told.clone())).await;
        assert!(matches!(none, Err(CallError::Rpc { code: -32_602, .. })), "{none:?}");
        assert_eq!(*told.lock().unwrap(), [r#"{"notifications":{"resourceSubscriptions":["a://1"]}}"#]);
        over.cancel();
        assert!(some.await.unwrap().is_err());
        assert_eq!(sent(&channel, 4).await[3].0, "resources/unsubscribe");
    }

    #[tokio::test]
    async fn a_session_that_is_forgotten_ends_the_watching_and_a_gap_is_told_as_a_change() {
        let channel = Scripted::new([Says::Result("{}")]);
        let watched = Watched::default();
        let (listening, heard) = watch(&watched, &channel, &["a://1"]).await;
        watched.missed();
        assert_eq!(*heard.lock().unwrap(), [r#"{"uri":"a://1"}"#]);
        watched.lost();
        assert!(matches!(listening.await.unwrap(), Err(CallError::StreamEnded(_))));
        assert!(watched.table().watchers.is_empty() && watched.table().subscribed.is_empty());
    }
}
