//! Answer a question of a durable task (architecture.md §10, `input_tool`).
//!
//! An answer is judged against what the task asks, stored, and brought to the remote by whoever follows the task, under
//! its name, so that a repeat is one.

use caribou_core::failure::Code;
use caribou_core::ids::Scope;
use caribou_core::task::input::Answer;
use caribou_core::task::{Duty, TaskId};
use caribou_ports::store::{AnswerStored, NewAnswer, StoredTask, Wake};
use serde_json::value::RawValue;

use super::read_tasks::{no_task, unwritten};
use crate::Runtime;
use crate::audit::Entry;
use crate::caller::Caller;
use crate::error::VerbError;

impl Runtime {
    /// Stores the answer `body`, named `input_id`, to what a task of `scope` asks. The same one again changes nothing.
    ///
    /// # Errors
    /// `not_found`: there is no such task. `conflict`: it asks nothing, or nothing by this name, or another answer has
    /// the name. `invalid`: it is no answer to the question. `unavailable` and `outcome_unknown` as for a cancellation.
    pub async fn answer_task(
        &self,
        caller: &Caller,
        scope: &Scope,
        task: &str,
        input_id: &str,
        body: &RawValue,
    ) -> Result<StoredTask, VerbError> {
        let entry = Entry::new("answer_task", caller).within(scope);
        self.audit.around(entry, self.answer_on_record(caller, scope, task, input_id, body)).await
    }

    async fn answer_on_record(
        &self,
        caller: &Caller,
        scope: &Scope,
        task: &str,
        input_id: &str,
        body: &RawValue,
    ) -> Result<StoredTask, VerbError> {
        caller.principal.acts_for(Some(scope.user.as_str()))?;
        let road = self.task_service()?;
        let task = TaskId::parse(task).ok_or_else(no_task)?;
        let answer = NewAnswer { input_id: input_id.to_owned(), body: body.get().to_owned() };
        let stored = road.store.answer(task, Some(scope.clone()), answer).await;
        match stored.map_err(|error| unwritten(&error))? {
            AnswerStored::NotFound => return Err(no_task()),
            AnswerStored::Judged(Answer::Store) => road.store.wake(Wake::Work(Duty::Answer)).await,
            AnswerStored::Judged(Answer::Same) => {}
            AnswerStored::Judged(refused) => return Err(refusal(refused)),
        }
        road.one(&task.to_string(), Some(scope)).await
    }
}

fn refusal(answer: Answer) -> VerbError {
    let (code, detail) = match answer {
        Answer::Invalid(why) => (Code::Invalid, why),
        Answer::Conflict => (Code::Conflict, "another answer was given under this `input_id` before".to_owned()),
        Answer::TooMany => (Code::Conflict, "the task has as many answers as it may have".to_owned()),
        Answer::NothingAsked | Answer::Store | Answer::Same => {
            (Code::Conflict, "the task asks nothing, or nothing by this `input_id`".to_owned())
        }
    };
    VerbError::new(code, detail)
}
