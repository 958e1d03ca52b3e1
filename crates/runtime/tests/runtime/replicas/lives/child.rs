//! Children of one life, and a book of when each of them lived.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use caribou_ports::BoxFuture;
use caribou_ports::mcp::{
    CallError, Connector, Disconnect, OpenError, OpenSession, RawRequest, Session, SessionFacts, TaskQuestion,
    ToolCall, ToolListing,
};
use serde_json::value::RawValue;
use tokio::sync::watch;

use super::Mutant;
use super::guard::Guard;
use crate::borders::Borders;
use crate::fake::{Fake, FakeConnector};

/// What was wrong, over all lives.
#[derive(Clone, Default)]
pub(super) struct Book(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    alive: HashMap<String, usize>,
    born: usize,
    killed: usize,
    wrong: Vec<String>,
}

impl Book {
    pub(super) fn wrong(&self, what: String) {
        self.0.lock().unwrap().wrong.push(what);
    }

    /// What was wrong so far.
    pub(super) fn violations(&self) -> Vec<String> {
        self.0.lock().unwrap().wrong.clone()
    }

    /// Children that lived, and of these those that a guard ended.
    pub(super) fn lived(&self) -> (usize, usize) {
        let noted = self.0.lock().unwrap();
        (noted.born, noted.killed)
    }
}

/// One child.
pub(super) struct Child {
    of: String,
    book: Book,
    gone: watch::Sender<bool>,
}

impl Child {
    fn born(of: String, book: &Book) -> Arc<Self> {
        let mut noted = book.0.lock().unwrap();
        noted.born += 1;
        let alive = noted.alive.entry(of.clone()).or_default();
        *alive += 1;
        if *alive > 1 {
            noted.wrong.push(format!("two children of {of} at once"));
        }
        drop(noted);
        Arc::new(Self { of, book: book.clone(), gone: watch::Sender::new(false) })
    }

    fn leave(&self, is_killed: bool) {
        if !self.gone.send_replace(true) {
            let mut noted = self.book.0.lock().unwrap();
            *noted.alive.get_mut(&self.of).unwrap() -= 1;
            noted.killed += usize::from(is_killed);
        }
    }

    /// Is killed.
    pub(super) fn die(&self) {
        self.leave(true);
    }

    async fn gone(&self) -> Disconnect {
        let _ = self.gone.subscribe().wait_for(|gone| *gone).await;
        Disconnect { reason: "it was killed".to_owned(), exit: None, stderr: String::new() }
    }
}

/// Starts the children of one life.
pub(super) struct Starter {
    pub(super) boot: String,
    pub(super) fake: Arc<Fake>,
    pub(super) borders: Arc<Borders<Mutant>>,
    pub(super) guard: Guard,
    pub(super) book: Book,
}

impl Connector for Starter {
    fn open(&self, request: OpenSession) -> BoxFuture<'static, Result<Arc<dyn Session>, OpenError>> {
        let inner = FakeConnector(self.fake.clone());
        // Those of the catalogue are each replica's own.
        if !request.label.contains("ann:") {
            return inner.open(request);
        }
        // At this moment it was decided that the child is started (invariant L1).
        if !self.guard.is_trusted() {
            self.book.wrong(format!("{} starts a child of {} without trust", self.boot, request.label));
        }
        let (borders, guard, book) = (self.borders.clone(), self.guard.clone(), self.book.clone());
        Box::pin(async move {
            borders.cross().await;
            let child = Child::born(request.label.clone(), &book);
            if !guard.start(&child) {
                child.leave(false);
                return Err(OpenError::NotStartable("there is no trust".to_owned()));
            }
            let opened = inner.open(request).await;
            borders.cross().await;
            match opened {
                Ok(session) => Ok(Arc::new(Guarded { session, child, borders }) as Arc<dyn Session>),
                Err(error) => {
                    child.leave(false);
                    Err(error)
                }
            }
        })
    }
}

/// The session of a child.
struct Guarded {
    session: Arc<dyn Session>,
    child: Arc<Child>,
    borders: Arc<Borders<Mutant>>,
}

impl Session for Guarded {
    fn facts(&self) -> &SessionFacts {
        self.session.facts()
    }

    fn call_tool(&self, call: ToolCall) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        Box::pin(async move {
            self.borders.cross().await;
            let answer = tokio::select! {
                biased;
                disconnect = self.child.gone() => Err(CallError::Disconnected { disconnect, sent: true }),
                answer = self.session.call_tool(call) => answer,
            };
            self.borders.cross().await;
            answer
        })
    }

    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        self.session.request(request)
    }

    fn task_questions(&self, task_id: &str) -> BoxFuture<'_, Result<Vec<TaskQuestion>, CallError>> {
        self.session.task_questions(task_id)
    }

    fn answer_task(&self, task: &str, name: &str, answer: Box<RawValue>) -> BoxFuture<'_, Result<bool, CallError>> {
        self.session.answer_task(task, name, answer)
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<ToolListing, CallError>> {
        self.session.list_tools()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let (closing, child, borders) = (self.session.close(), self.child.clone(), self.borders.clone());
        Box::pin(async move {
            borders.cross().await;
            closing.await;
            child.leave(false);
        })
    }

    fn ended(&self) -> BoxFuture<'static, Disconnect> {
        let (ended, child, borders) = (self.session.ended(), self.child.clone(), self.borders.clone());
        Box::pin(async move {
            let disconnect = tokio::select! {
                disconnect = ended => disconnect,
                disconnect = child.gone() => disconnect,
            };
            borders.cross().await;
            disconnect
        })
    }

    fn stderr_tail(&self) -> String {
        String::new()
    }
}
