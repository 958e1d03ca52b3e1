//! Waits for the end of a task, and asks its legacy client meanwhile what the task asks (mcp.md §9.1, input).
//!
//! Only what a client said it can answer is asked, and only on the stream of the request that waits. The answers are
//! stored like those of every other door and brought by whoever follows the task, so a client that goes away, or is answered
//! for by another, breaks nothing.

use std::pin::Pin;
use std::time::Duration;

use caribou_core::era::Era;
use caribou_core::failure::Code;
use caribou_core::raw::{Members, object};
use caribou_core::task::client_view::Question;
use caribou_runtime::{ClientTask, VerbError};
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};

use super::shown::related;
use crate::asking::{MAX_ROUNDS, ask_all};
use crate::fault::Fault;
use crate::meta::CAPABILITIES;
use crate::notices::Notices;
use crate::work::Work;

type Answers = Vec<(String, Box<RawValue>)>;

/// The questions that a client is asked now, by their names, and its answers to come.
struct Asking<'w> {
    names: Vec<String>,
    answers: Pin<Box<dyn Future<Output = Result<Answers, Fault>> + Send + 'w>>,
}

/// The task once it has ended; `None` = it goes on after `patience`, or after this replica.
///
/// # Errors
/// The client went away, or the task cannot be read.
pub(crate) async fn wait(
    work: &Work,
    notices: &Notices,
    task: ClientTask,
    patience: Duration,
) -> Result<Option<ClientTask>, Fault> {
    let deadline = Instant::now() + patience;
    let is_heard = notices.is_heard();
    let (mut task, mut asking, mut rounds) = (task, None, 0);
    loop {
        let view = task.view(Era::Legacy);
        if view.word.is_terminal() {
            return Ok(Some(task));
        }
        let open: Vec<Question> = view.questions.into_iter().filter(|question| is_answered(work, question)).collect();
        if !is_heard || rounds >= MAX_ROUNDS || open.is_empty() {
            asking = None;
        } else if asking.as_ref().is_none_or(|asking: &Asking<'_>| !asking.is_about(&open)) {
            rounds += 1;
            asking = ask(work, notices, &task, &open);
        }
        tokio::select! {
            answers = answers(&mut asking) => {
                asking = None;
                // Who refuses is not asked again.
                let is_answered = match answers {
                    Ok(answers) => store(work, &task, &open, answers).await?,
                    Err(_) => false,
                };
                if !is_answered {
                    rounds = MAX_ROUNDS;
                }
            }
            changed = changed(work, &task) => changed?,
            () = notices.unheard(), if is_heard => {
                return Err(Fault::not_answered("the client went away before the task had ended"));
            }
            () = sleep_until(deadline) => return Ok(None),
            // Another replica goes on with it.
            () = work.endpoint.options.stopping.cancelled() => return Ok(None),
        }
        let reach = caribou_runtime::TaskReach { user: task.stored.scope.user.clone(), thread: None, server: None };
        let (runtime, caller) = (&work.endpoint.runtime, &work.client.asked.caller);
        task = runtime.client_task(caller, &reach, &task.stored.task.to_string()).await?;
    }
}

impl Asking<'_> {
    fn is_about(&self, open: &[Question]) -> bool {
        self.names.iter().eq(open.iter().map(|question| &question.name))
    }
}

/// Never, while nothing is asked.
async fn answers(asking: &mut Option<Asking<'_>>) -> Result<Answers, Fault> {
    match asking {
        Some(asking) => asking.answers.as_mut().await,
        None => std::future::pending().await,
    }
}

/// Whether the client said that it answers such questions.
fn is_answered(work: &Work, question: &Question) -> bool {
    let capability = match question.method().as_str() {
        "elicitation/create" => "elicitation",
        "sampling/createMessage" => "sampling",
        "roots/list" => "roots",
        _ => return false,
    };
    let declared = work.meta.passed.iter().find(|(key, _)| key == CAPABILITIES);
    declared.and_then(|(_, declared)| Members::of(declared)).is_some_and(|declared| declared.get(capability).is_some())
}

fn ask<'w>(work: &'w Work, notices: &'w Notices, task: &ClientTask, open: &[Question]) -> Option<Asking<'w>> {
    let desk = work.desk(notices)?;
    let name = task.stored.task.to_string();
    let requests: Vec<_> = open.iter().map(|question| (question.name.clone(), of_task(question, &name))).collect();
    let asked = async move {
        let requests: Vec<_> = requests.iter().map(|(name, request)| (name.as_str(), &**request)).collect();
        ask_all(&desk, &requests).await
    };
    Some(Asking { names: open.iter().map(|question| question.name.clone()).collect(), answers: Box::pin(asked) })
}

/// The request of a question, as belonging to its task.
fn of_task(question: &Question, task: &str) -> Box<RawValue> {
    let nothing = RawValue::from_string("{}".to_owned()).unwrap_or_default();
    let members = Members::of(&question.request).map_or_else(Vec::new, |members| members.0);
    let params = members.iter().find(|(name, _)| name == "params").map_or(&*nothing, |(_, params)| *params);
    let params = RawValue::from_string(related(params, task)).unwrap_or_default();
    let others = members.iter().filter(|(name, _)| name != "params").map(|(name, value)| (&**name, *value));
    RawValue::from_string(object(others.chain([("params", &*params)]))).unwrap_or_default()
}

/// Stores what the client answered; whether it answered all of it.
async fn store(work: &Work, task: &ClientTask, open: &[Question], answers: Answers) -> Result<bool, VerbError> {
    let mut is_all = true;
    for (name, answer) in answers {
        let body = open.iter().find(|question| question.name == name).and_then(|question| question.body(&answer));
        let Some(body) = body else {
            is_all = false;
            continue;
        };
        match bring(work, task, &name, &body).await {
            // It is asked again.
            Err(error) if error.code == Code::Invalid => {}
            done => done?,
        }
    }
    Ok(is_all)
}

/// Stores one answer. That somebody answered before is no error (mcp.md §9.2, tasks/update).
///
/// # Errors
/// `invalid`: it is no answer to the question. Or it cannot be stored.
pub(crate) async fn bring(work: &Work, task: &ClientTask, name: &str, body: &RawValue) -> Result<(), VerbError> {
    let (runtime, caller) = (&work.endpoint.runtime, &work.client.asked.caller);
    let stored = &task.stored;
    match runtime.answer_task(caller, &stored.scope, &stored.task.to_string(), name, body).await {
        Err(error) if error.code != Code::Conflict => Err(error),
        _ => Ok(()),
    }
}

/// Resolves when something is told of the task that was not known.
async fn changed(work: &Work, task: &ClientTask) -> Result<(), VerbError> {
    let (runtime, caller) = (&work.endpoint.runtime, &work.client.asked.caller);
    let stored = &task.stored;
    let followed = runtime.follow_task(caller, &stored.scope, &stored.task.to_string(), stored.version).await?;
    let Some(mut followed) = followed else { return Ok(()) };
    followed.next().await.map_or(Ok(()), |event| event.map(drop))
}
