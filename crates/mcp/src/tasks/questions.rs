//! What a server asks about its own tasks in one session of the legacy era: requests marked as related to a task
//! (mcp.md §9.1, input).
//!
//! Owns the questions from the moment they come in until somebody answers, the server takes them back, or their task is
//! over: then, and when the session is closed, the rest is told that nobody answers. Bounded in number and size
//! (invariant B1); one too many is declined at once. A question dies with its session, as the request does that it is.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caribou_core::raw::{Members, text};
use caribou_core::task::limits::MAX_INPUT_BYTES;
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, TaskQuestion};
use futures::FutureExt as _;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::wire::envelope;
use crate::wire::limits::{MAX_TASK_QUESTIONS, MORE_QUESTIONS};

/// Marks a request as belonging to a task.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The result of an elicitation that nobody answers.
const NOBODY: &str = r#"{"action":"cancel"}"#;

/// Takes an answer of ours to where the server waits for it.
pub(crate) type Reply = Box<dyn FnOnce(Vec<u8>) -> BoxFuture<'static, Result<(), CallError>> + Send>;

/// The questions of one session.
#[derive(Default)]
pub(crate) struct Questions {
    book: Mutex<Book>,
    /// Told of every change.
    changed: Notify,
    /// Names are of this session alone, so that no answer to an older question fits a newer one.
    hasher: RandomState,
}

#[derive(Default)]
struct Book {
    open: Vec<Open>,
    /// The tasks whose result the server is being asked for.
    awaited: HashSet<String>,
    kept: u64,
}

/// A question that nobody has answered.
struct Open {
    task: String,
    question: TaskQuestion,
    /// The server's id of the request.
    id: Box<RawValue>,
    reply: Reply,
}

/// The task that a request of a server is about; `None` = it belongs to no task.
pub(crate) fn related_task(params: &RawValue) -> Option<String> {
    let meta = Members::of(params)?.get("_meta")?;
    let related = Members::of(meta)?.get(RELATED)?;
    text(Members::of(related)?.get("taskId")?).map(|task| task.into_owned())
}

impl Questions {
    /// Keeps a request that belongs to `task`. False when there is no room for it: it is then not kept.
    pub(crate) fn keep(
        &self,
        task: String,
        id: &RawValue,
        method: &str,
        params: &RawValue,
        reply: impl FnOnce() -> Reply,
    ) -> bool {
        let mut book = self.book();
        if book.open.len() >= MAX_TASK_QUESTIONS || params.get().len() + task.len() + id.get().len() > MAX_INPUT_BYTES {
            return false;
        }
        book.kept += 1;
        let name = format!("q-{:016x}", self.hasher.hash_one((book.kept, id.get())));
        let question = TaskQuestion { name, method: method.to_owned(), params: params.to_owned() };
        book.open.push(Open { task, question, id: id.to_owned(), reply: reply() });
        drop(book);
        self.changed.notify_waiters();
        true
    }

    /// The questions of a task, in the order in which they were asked.
    pub(crate) fn of(&self, task: &str) -> Vec<TaskQuestion> {
        self.book().open.iter().filter(|open| open.task == task).map(|open| open.question.clone()).collect()
    }

    /// The questions of a task, a moment after the first one; none when the server is no longer asked for its result, or after
    /// `patience`.
    pub(crate) async fn first(&self, task: &str, patience: Duration) -> Vec<TaskQuestion> {
        let came = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                // Before the look, so that nothing is missed between the two.
                changed.as_mut().enable();
                if !self.of(task).is_empty() {
                    break;
                }
                if !self.book().awaited.contains(task) {
                    return Vec::new();
                }
                changed.await;
            }
            sleep(MORE_QUESTIONS).await;
            self.of(task)
        };
        timeout(patience, came).await.unwrap_or_default()
    }

    /// Answers a question with a result. False when there is none by this name.
    ///
    /// # Errors
    /// The answer could not be brought; the question is gone all the same, since the answer may have arrived.
    pub(crate) async fn answer(&self, task: &str, name: &str, result: &RawValue) -> Result<bool, CallError> {
        let open = {
            let mut book = self.book();
            let found = book.open.iter().position(|open| open.task == task && open.question.name == name);
            found.map(|place| book.open.remove(place))
        };
        let Some(Open { id, reply, .. }) = open else { return Ok(false) };
        reply(envelope::response(&id, Ok(result))).await.map(|()| true)
    }

    /// The server takes a request back: `params` of `notifications/cancelled`.
    pub(crate) fn taken_back(&self, params: &RawValue) {
        let Some(id) = Members::of(params).and_then(|params| params.get("requestId").map(RawValue::to_owned)) else {
            return;
        };
        self.book().open.retain(|open| open.id.get() != id.get());
        self.changed.notify_waiters();
    }

    /// Notes that the server is asked for the result of a task. `None` when it already is, or for too many at once.
    pub(crate) fn await_result(self: &Arc<Self>, task: &str) -> Option<Awaited> {
        let mut book = self.book();
        if book.awaited.len() >= MAX_TASK_QUESTIONS || !book.awaited.insert(task.to_owned()) {
            return None;
        }
        Some(Awaited { questions: Arc::clone(self), task: task.to_owned() })
    }

    /// A task is over: nobody answers what it still asks.
    pub(crate) fn over(&self, task: &str) {
        let left: Vec<Open> = self.book().open.extract_if(.., |open| open.task == task).collect();
        self.changed.notify_waiters();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        for open in left {
            runtime.spawn(unanswered(open));
        }
    }

    /// The session is about to be closed: what can be told without waiting is told.
    pub(crate) fn close(&self) {
        let left = std::mem::take(&mut self.book().open);
        self.changed.notify_waiters();
        for open in left {
            let _ = unanswered(open).now_or_never();
        }
    }

    /// The book is consistent between any two statements, so a panic elsewhere does not spoil it.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the server that nobody answers. It is told once; that it was told is of no matter to us.
async fn unanswered(open: Open) {
    let Ok(nobody) = serde_json::from_str::<&RawValue>(NOBODY) else { return };
    let _ = (open.reply)(envelope::response(&open.id, Ok(nobody))).await;
}

/// While it lives, the server is asked for the result of a task.
pub(crate) struct Awaited {
    questions: Arc<Questions>,
    task: String,
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.questions.book().awaited.remove(&self.task);
        self.questions.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    /// Keeps a question whose answer ends in the list.
    fn keep(questions: &Questions, task: &str, id: &str, answers: &Arc<Mutex<Vec<String>>>) -> bool {
        let answers = Arc::clone(answers);
        questions.keep(task.to_owned(), &raw(id), "elicitation/create", &raw(r#"{"message":"?"}"#), || {
            Box::new(move |answer| {
                answers.lock().unwrap().push(String::from_utf8(answer).unwrap());
                Box::pin(std::future::ready(Ok(())))
            })
        })
    }

    #[test]
    fn the_task_of_a_request_stands_in_its_meta() {
        let related = raw(r#"{"message":"?","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t\u0031"}}}"#);
        assert_eq!(related_task(&related).as_deref(), Some("t1"));
        for none in ["{}", r#"{"_meta":{}}"#, r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":1}}}"#] {
            assert_eq!(related_task(&raw(none)), None, "{none}");
        }
    }

    #[tokio::test]
    async fn a_question_is_answered_once_by_its_name() {
        // mcp.md §9.1, input.
        let (questions, answers) = (Questions::default(), Arc::default());
        assert!(keep(&questions, "t1", "7", &answers) && keep(&questions, "t2", "\"x\"", &answers));
        let [asked] = &questions.of("t1")[..] else { panic!("one question") };
        assert_eq!((asked.method.as_str(), asked.params.get()), ("elicitation/create", r#"{"message":"?"}"#));
        let answer = raw(r#"{"action":"accept","content":{"n":1.0}}"#);
        assert!(!questions.answer("t2", &asked.name, &answer).await.unwrap(), "of another task");
        assert!(questions.answer("t1", &asked.name, &answer).await.unwrap());
        assert!(!questions.answer("t1", &asked.name, &answer).await.unwrap(), "answered before");
        assert_eq!(
            *answers.lock().unwrap(),
            [r#"{"jsonrpc":"2.0","id":7,"result":{"action":"accept","content":{"n":1.0}}}"#]
        );
    }

    #[tokio::test]
    async fn what_nobody_answers_is_told_so_when_the_task_or_the_session_is_over() {
        let (questions, answers) = (Questions::default(), Arc::default());
        for (task, id) in [("t1", "1"), ("t2", "2"), ("t3", "3")] {
            keep(&questions, task, id, &answers);
        }
        questions.taken_back(&raw(r#"{"requestId":3}"#));
        questions.over("t1");
        tokio::task::yield_now().await;
        questions.close();
        let told = |id: u8| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"cancel"}}}}"#);
        assert_eq!(*answers.lock().unwrap(), [told(1), told(2)], "the third was taken back");
    }

    #[test]
    fn questions_are_bounded_in_number_and_size() {
        let (questions, answers) = (Questions::default(), Arc::default());
        let long = raw(&format!(r#""{}""#, "x".repeat(MAX_INPUT_BYTES)));
        assert!(!questions.keep("t".to_owned(), &raw("1"), "m", &long, || unreachable!("not kept")));
        assert_eq!((0..1_000).filter(|_| keep(&questions, "t", "1", &answers)).count(), MAX_TASK_QUESTIONS);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_question_is_waited_for_while_the_result_is_asked_for() {
        let (questions, answers) = (Arc::new(Questions::default()), Arc::default());
        let patience = Duration::from_secs(5);
        assert!(questions.first("t", patience).await.is_empty(), "nobody asks");
        let awaited = questions.await_result("t").expect("the first");
        assert!(questions.await_result("t").is_none(), "asked for once");
        assert!(questions.first("t", patience).await.is_empty(), "patience is over");
        let (found, _) = tokio::join!(questions.first("t", patience), async { keep(&questions, "t", "1", &answers) });
        assert_eq!(found.len(), 1);
        let (none, ()) = tokio::join!(questions.first("u", patience), async { drop(awaited) });
        assert!(none.is_empty() && questions.await_result("t").is_some());
    }
}
