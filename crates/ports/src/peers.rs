//! The other replicas: sessions that live there, reached as if they were here.
//!
//! A session of another replica is a [`Session`] like any other. Only opening it is different: the owner is asked for it
//! once, and says whether it takes it (durability.md 2.2, forward). An owner never forwards, so a call crosses at most
//! one border (invariant S1).

use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::Secret;
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Epoch, Scope, ServerName, SessionKey, UserId};
use caribou_core::session::NotTaken;
use serde_json::value::RawValue;

use crate::BoxFuture;
use crate::mcp::{RawRequest, Session, TaskQuestion, ToolCall, ToolListing};

/// The way to the other replicas.
pub trait Peers: Send + Sync + 'static {
    /// Asks a replica for one of its sessions, or to open one. Whatever it refuses has not reached a server.
    ///
    /// The session that is answered ends by itself ([`Session::ended`]) when the replica does not hold it any more, or
    /// cannot be reached. Closing it closes nothing there: it is not ours.
    fn open(&self, peer: PeerAddress, wanted: Wanted) -> BoxFuture<'static, Result<OpenedThere, PeerError>>;

    /// Has a replica close its sessions of `scope`, of one server if named. How many; resolves when they are gone.
    fn close_sessions(
        &self,
        peer: PeerAddress,
        scope: Scope,
        server: Option<ServerName>,
    ) -> BoxFuture<'static, Result<u64, PeerError>>;

    /// Passes on a word between a client of the legacy era and that replica, which may wait for it. Whether it did.
    fn tell(&self, peer: PeerAddress, word: ClientWord) -> BoxFuture<'static, Result<bool, PeerError>>;

    /// Tells a replica that something it may wait for has changed in the store. A hint: nothing depends on it.
    fn nudge(&self, peer: PeerAddress, about: Nudge);

    /// These lives take part; connections to all others are given up.
    fn keep(&self, living: &[BootId]);
}

/// Where one life of a replica is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddress {
    /// Which life: it is compared with the one that answers, since addresses are used again.
    pub boot: BootId,
    /// `host:port`.
    pub address: String,
}

/// A word in the session of a client of the legacy era, on its way through another replica than the one it came to. That
/// the session is the client's was judged there (invariant P1).
#[derive(Clone, Debug)]
pub struct ClientWord {
    /// The session.
    pub session: String,
    /// What is said.
    pub says: ClientSays,
}

/// What the client says beside requests, or is told. Ids are JSON text.
#[derive(Clone, Debug)]
pub enum ClientSays {
    /// It answers a question that it was asked.
    Result(String, Box<RawValue>),
    /// It refuses the question, with this error object.
    Error(String, Box<RawValue>),
    /// It cancels its request of this id.
    Cancels(String),
    /// It is told this message, on the stream that the other replica holds for it (mcp.md §3.4).
    Told(String),
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nudge {
    /// Some generation: of the whole configuration or of one server.
    Generations,
    /// Work that is due, or events.
    Work,
    /// A chain of refresh tokens.
    Chains,
    /// Which replicas there are.
    Replicas,
    /// Something that clients are told of.
    Told(Change),
}

/// Something that clients are told of, whichever replica noticed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// A list of tools.
    Tools(Listed),
    /// A list of prompts.
    Prompts(Listed),
    /// A list of resources.
    Resources(Listed),
    /// What the session of a client is subscribed to, or which tasks it has: the name of the session.
    Client(String),
    /// A person has been where a server sent the caller of its session in this scope: the server's name of the visit.
    Visited(Scope, String),
}

/// Whose list it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listed {
    /// Of this server; `None` = of several.
    pub server: Option<ServerName>,
    /// The user whose own server it is, and whom alone it concerns (invariant P1); `None` = it is the deployment's.
    pub owner: Option<UserId>,
}

impl Listed {
    /// Of a server of the deployment.
    pub fn of(server: ServerName) -> Self {
        Self { server: Some(server), owner: None }
    }
}

/// The session that is wanted.
#[derive(Clone)]
pub struct Wanted {
    /// Of which server, user and thread, under which credentials of a request.
    pub key: SessionKey,
    /// The headers of a caller that it is opened with.
    pub headers: Vec<(String, Secret)>,
    /// The epoch that the store named; `None` = it was placed there, and nobody held it then.
    pub epoch: Option<Epoch>,
    /// How long opening it may take.
    pub within: Duration,
}

/// A session of another replica.
pub struct OpenedThere {
    /// The session.
    pub session: Arc<dyn Session>,
    /// At which epoch its owner holds it.
    pub epoch: Epoch,
}

/// Why there is no session of another replica.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PeerError {
    /// It did not take it: look the session up again.
    #[error("{0}")]
    NotTaken(#[from] NotTaken),
    /// It cannot be reached, or is another life by now: look the session up again. What was asked for may have been
    /// done; no call was made.
    #[error("a replica cannot be reached: {0}")]
    Unreachable(String),
    /// It took it, and the session could not be opened.
    #[error("{detail}")]
    Failed {
        /// The word a caller branches on.
        code: Code,
        /// What happened, for people.
        detail: String,
        /// When it may be worth trying again.
        retry_after: Option<Duration>,
    },
}

/// One request in a session of another replica, as its owner receives it.
pub struct Exchange {
    /// Whose session.
    pub key: SessionKey,
    /// At which epoch it was opened.
    pub epoch: Epoch,
    /// Names the request in the whole cluster: asked again under the same name, it is joined and not made again
    /// (invariant S2).
    pub call_id: String,
    /// Whether it was sent before and the connection was lost: it is joined, never begun.
    pub is_again: bool,
    /// How often it was forwarded.
    pub hops: u32,
    /// How long it may take.
    pub within: Duration,
    /// What is asked.
    pub request: PeerRequest,
}

/// What is asked in a session: its methods, one for one.
pub enum PeerRequest {
    /// [`Session::call_tool`].
    CallTool(ToolCall),
    /// [`Session::request`].
    Request(RawRequest),
    /// [`Session::list_tools`].
    ListTools,
    /// [`Session::task_questions`] of this task of the server.
    TaskQuestions(String),
    /// [`Session::answer_task`].
    AnswerTask {
        /// The task of the server.
        task_id: String,
        /// The question.
        question: String,
        /// Its answer.
        answer: Box<RawValue>,
    },
}

/// What is answered.
#[derive(Clone, Debug)]
pub enum PeerAnswer {
    /// The result, byte for byte.
    Result(Arc<RawValue>),
    /// The tools.
    Tools(ToolListing),
    /// The questions.
    Questions(Vec<TaskQuestion>),
    /// Whether there was such a question.
    Answered(bool),
}
