//! Where the events of tasks go (contract 6.9).
//!
//! A sink knows the words of its receiver; when it is asked, and what becomes of its answers, is decided by
//! [`caribou_core::notification`]. It holds no state, keeps no schedule and repeats nothing. Giving up on it by dropping
//! its future is always allowed: the same launch is made again later, under the same key.

use caribou_core::ids::{Scope, ServerName};
use caribou_core::notification::{Audience, Happened, Key, Sink};

use crate::BoxFuture;

/// One receiver of events.
pub trait EventSink: Send + Sync + 'static {
    /// Which one it is, in the record of each delivery.
    fn sink(&self) -> Sink;

    /// What it would take now. Asked before anything is claimed for it; must not block. A sink that never knows says
    /// [`Room::Any`], and hears of everything.
    fn room(&self) -> Room {
        Room::Any
    }

    /// Tells one event. Whoever has been told under this key before has the run it launched then, and answers with it.
    fn launch<'a>(&'a self, told: &'a Told) -> BoxFuture<'a, Launched>;

    /// How the run is that a launch was answered with. Without effects.
    fn look_up<'a>(&'a self, told: &'a Told, run_id: &'a str) -> BoxFuture<'a, Run>;

    /// Tells that a chain of refresh tokens needs a person. Told under the same key until it is taken. A sink without
    /// words for it takes it and does nothing.
    fn chain_ended<'a>(&'a self, ended: &'a ChainEnded) -> BoxFuture<'a, Launched> {
        let _ = ended;
        Box::pin(std::future::ready(Launched::Delivered))
    }
}

/// The end of a chain of refresh tokens: a person must sign in again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainEnded {
    /// Names this end, and no other one.
    pub key: String,
    /// The server; of a personal connection its runtime name.
    pub server: ServerName,
    /// How many successors of the configured refresh token there were.
    pub generation: u64,
    /// For people; holds no secret.
    pub why: String,
}

/// What a sink would take at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// As much as is told at once, whosever it is.
    Any,
    /// At most so many launches and look-ups at the same time, those under way counted; further ones only about tasks of
    /// these users.
    For(usize, Audience),
}

/// One event of one task, for one launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Names the launch.
    pub key: Key,
    /// Whose task it is, in which thread.
    pub scope: Scope,
    /// The server.
    pub server: ServerName,
    /// The run of an agent that asked for the task.
    pub run_id: Option<String>,
    /// What is told: a JSON object.
    pub body: String,
    /// When it was recorded, in microseconds of the Unix epoch by the store's clock.
    pub at_us: i64,
}

/// How a receiver took an event. Texts are for people, and hold no secret and no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launched {
    /// It has it, and there is no run to look after.
    Delivered,
    /// It has launched a run for it, now or when it was told under this key before.
    Run {
        /// What it calls the run.
        run_id: String,
    },
    /// The thread is busy with another run.
    Busy,
    /// It will never take it: there is no such thread, or the event or its sender is refused.
    Gone(String),
    /// It has not taken it, surely, and may another time.
    Refused(String),
    /// Nobody knows whether it has it.
    Unclear(String),
    /// Nobody was there, and nothing was sent.
    NobodyThere,
}

/// How a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// It goes on.
    Running,
    /// It has succeeded.
    Succeeded,
    /// It has failed, ran out of time or was interrupted.
    Failed(String),
    /// The receiver knows of no such run.
    NotFound,
    /// The receiver did not say.
    Error(String),
    /// Nobody was there to be asked.
    NobodyThere,
}

impl From<Launched> for Happened {
    /// What it means for the delivery.
    fn from(launched: Launched) -> Self {
        match launched {
            Launched::Delivered => Self::Taken,
            Launched::Run { run_id } => Self::Launched { run_id },
            Launched::Busy => Self::Busy,
            Launched::Gone(why) => Self::Gone(why),
            Launched::Refused(why) => Self::Refused(why),
            Launched::Unclear(why) => Self::Unclear(why),
            Launched::NobodyThere => Self::NobodyThere,
        }
    }
}

impl From<Run> for Happened {
    /// What it means for the delivery.
    fn from(run: Run) -> Self {
        match run {
            Run::Running => Self::Active,
            Run::Succeeded => Self::Succeeded,
            Run::Failed(why) => Self::Failed(why),
            Run::NotFound => Self::Failed("the receiver knows of no such run".to_owned()),
            Run::Error(why) => Self::NotLookedUp(why),
            Run::NobodyThere => Self::NobodyThere,
        }
    }
}
