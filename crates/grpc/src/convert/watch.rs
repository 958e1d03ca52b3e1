//! What a watcher is told, and what it acknowledges (contract 6.9).

use caribou_core::notification::{Key, agent_message};
use caribou_core::task::limits::MAX_PUBLIC_ERROR_CHARS;
use caribou_proto::v1;
use caribou_proto::v1::ack_event::Answer;
use caribou_proto::v1::run_state::State;
use caribou_runtime::{Launched, Run, WatchAnswer, WatchedEvent};
use tonic::Status;

use super::tasks::instant;
use crate::status;

/// Characters of a run's name, as over the webhook.
const MAX_RUN_ID_CHARS: usize = 64;

/// One event, or the question how its run is.
pub(crate) fn watched(event: WatchedEvent) -> v1::TaskEvent {
    let WatchedEvent { told, launched_run } = event;
    let Key { task, seq, attempt } = told.key;
    v1::TaskEvent {
        key: told.key.to_string(),
        task_id: task.to_string(),
        seq,
        attempt,
        user_id: told.scope.user.as_str().to_owned(),
        thread_id: told.scope.thread.as_str().to_owned(),
        server: told.server.as_str().to_owned(),
        run_id: told.run_id,
        time: Some(instant(told.at_us)),
        agent_message: agent_message(&told.body),
        event: told.body,
        launched_run_id: launched_run,
    }
}

/// The key and what is said about it.
///
/// # Errors
/// `INVALID_ARGUMENT`: it says nothing, or names a run that can be none.
pub(crate) fn acknowledged(ack: v1::AckEvent) -> Result<(String, WatchAnswer), Status> {
    let answer = match ack.answer.ok_or_else(|| status::invalid("`ack` needs an answer, such as `accepted`"))? {
        Answer::Accepted(_) => WatchAnswer::Launch(Launched::Delivered),
        Answer::Launched(launched) => WatchAnswer::Launch(Launched::Run { run_id: run_id(launched.run_id)? }),
        Answer::Busy(_) => WatchAnswer::Launch(Launched::Busy),
        Answer::Refused(refused) => WatchAnswer::Launch(Launched::Refused(reason("refused", &refused.reason))),
        Answer::Gone(gone) => WatchAnswer::Launch(Launched::Gone(reason("the thread is gone", &gone.reason))),
        Answer::Run(state) => {
            let run = match state.state() {
                State::Running => Run::Running,
                State::Succeeded => Run::Succeeded,
                State::Failed => Run::Failed(reason("the run failed", &state.reason)),
                State::NotFound => Run::NotFound,
                State::Unspecified => return Err(status::invalid("`run.state` must say how the run is")),
            };
            WatchAnswer::Run { run_id: run_id(state.run_id)?, run }
        }
    };
    Ok((ack.key, answer))
}

fn run_id(text: String) -> Result<String, Status> {
    let fits = (1..=MAX_RUN_ID_CHARS).contains(&text.chars().count()) && !text.contains(char::is_control);
    let wrong = format!("`run_id` must have 1 to {MAX_RUN_ID_CHARS} characters, none of them a control character");
    if fits { Ok(text) } else { Err(status::invalid(wrong)) }
}

/// What people read of it: a database may not take every character, and logs show it.
fn reason(what: &str, said: &str) -> String {
    let said: String = said.chars().filter(|c| !c.is_control()).take(MAX_PUBLIC_ERROR_CHARS).collect();
    if said.is_empty() { format!("{what}, the watcher says") } else { said }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(answer: Answer) -> Result<WatchAnswer, Status> {
        acknowledged(v1::AckEvent { key: "k".to_owned(), answer: Some(answer) }).map(|(_, answer)| answer)
    }

    fn launched(run_id: &str) -> Answer {
        Answer::Launched(v1::RunLaunched { run_id: run_id.to_owned() })
    }

    fn run(state: State, reason: &str) -> Answer {
        let run = v1::RunState { run_id: "r".to_owned(), state: state.into(), reason: reason.to_owned() };
        Answer::Run(run)
    }

    #[test]
    fn each_acknowledgement_is_a_phase_of_the_contract() {
        // Contract 6.9.
        let launch = |launched| Ok(WatchAnswer::Launch(launched));
        let of_run = |run| Ok(WatchAnswer::Run { run_id: "r".to_owned(), run });
        let no = || "no".to_owned();
        for (answer, means) in [
            (Answer::Accepted(v1::EventAccepted {}), launch(Launched::Delivered)),
            (launched("r1"), launch(Launched::Run { run_id: "r1".to_owned() })),
            (Answer::Busy(v1::ThreadBusy {}), launch(Launched::Busy)),
            (Answer::Refused(v1::EventRefused { reason: "n\0o".to_owned() }), launch(Launched::Refused(no()))),
            (Answer::Gone(v1::ThreadGone { reason: no() }), launch(Launched::Gone(no()))),
            (run(State::Running, ""), of_run(Run::Running)),
            (run(State::Succeeded, ""), of_run(Run::Succeeded)),
            (run(State::Failed, "no"), of_run(Run::Failed(no()))),
            (run(State::NotFound, ""), of_run(Run::NotFound)),
        ] {
            assert_eq!(said(answer).map_err(|status| status.to_string()), means);
        }
        assert_eq!(reason("it failed", ""), "it failed, the watcher says");
        assert_eq!(reason("", &"x".repeat(9_000)).len(), MAX_PUBLIC_ERROR_CHARS);
    }

    #[test]
    fn what_says_nothing_is_refused() {
        let long = "x".repeat(MAX_RUN_ID_CHARS + 1);
        for wrong in [launched(""), launched("a\0"), launched(&long), run(State::Unspecified, "")] {
            assert_eq!(said(wrong).unwrap_err().code(), tonic::Code::InvalidArgument);
        }
        let silent = acknowledged(v1::AckEvent { key: "k".to_owned(), answer: None });
        assert_eq!(silent.unwrap_err().code(), tonic::Code::InvalidArgument);
    }
}
