//! `caribou tasks answer`: answers what one task asks.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::named::{Named, Task, demand_replica};
use super::show::show;
use crate::commands::gateway::Gateway;
use crate::commands::tools::arguments_json;
use crate::commands::usage::Usage;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    named: Named,
    /// One member of the answer; the value is JSON if it is JSON, else text
    #[arg(long = "arg", value_name = "KEY=VALUE", conflicts_with_all = ["answers_json", "decline"])]
    args: Vec<String>,
    /// The whole answer as one JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "decline")]
    answers_json: Option<String>,
    /// Refuse to answer; only for what the protocol lets one decline
    #[arg(long)]
    decline: bool,
    /// Names the answer: the same again changes nothing. Without it the question's own name, or a new one
    #[arg(long, value_name = "ID")]
    input_id: Option<String>,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let target = &arguments.named.target;
    demand_replica(target)?;
    let answer = Gateway::once(target, async |gateway| {
        let task: Task = serde_json::from_slice(&gateway.get(&arguments.named.path("")).await?)?;
        let body = arguments.body(&task.input_required)?;
        gateway.post(&arguments.named.path("/input"), body).await
    })
    .await?;
    show(&answer, target.json)?;
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// The body for this question.
    fn body(&self, question: &Value) -> anyhow::Result<String> {
        let requests = question["inputRequests"].as_object();
        let only = requests.filter(|requests| requests.len() == 1).and_then(|requests| requests.keys().next());
        let input_id = match (&self.input_id, requests, only) {
            (Some(given), ..) => given.clone(),
            (None, None, _) => uuid::Uuid::now_v7().to_string(),
            (None, Some(_), Some(only)) => only.clone(),
            (None, Some(_), None) => {
                bail!(Usage("the task asks several things; name one of them with --input-id (see `tasks show`)"))
            }
        };
        let given = arguments_json::arguments(&self.args, self.answers_json.as_deref())?;
        let is_protocol = requests.is_some();
        if self.decline {
            return Ok(json!({ "input_id": input_id, "response": { "action": "decline" } }).to_string());
        }
        let Some(given) = given else { bail!(Usage("give an answer with --arg, --answers-json or --decline")) };
        // What was given member by member is the content of an answer that accepts; whole JSON is sent as it is.
        let answers = match is_protocol && self.answers_json.is_none() {
            true => serde_json::from_str(&format!("{{\"action\":\"accept\",\"content\":{}}}", given.get()))?,
            false => given,
        };
        Ok(serde_json::to_string(&Body { input_id: &input_id, answers })?)
    }
}

#[derive(serde::Serialize)]
struct Body<'a> {
    input_id: &'a str,
    answers: Box<RawValue>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn body(line: &str, question: &Value) -> anyhow::Result<Value> {
        let Line { arguments } = Line::try_parse_from(format!("answer t {line}").split(' '))?;
        Ok(serde_json::from_str(&arguments.body(question)?)?)
    }

    #[test]
    fn members_answer_a_tools_question_under_a_new_name() {
        let asked = json!({"prompt": "Which?"});
        let first = body("--arg format=pdf --arg pages=3", &asked).unwrap();
        assert_eq!(first["answers"], json!({"format": "pdf", "pages": 3}));
        assert_ne!(first["input_id"], body("--arg format=pdf", &asked).unwrap()["input_id"]);
        assert_eq!(body("--arg a=1 --input-id mine", &asked).unwrap()["input_id"], "mine");
    }

    #[test]
    fn a_request_of_the_protocol_is_accepted_or_declined_under_its_own_name() {
        let asked = json!({"inputRequests": {"k1": {"method": "elicitation/create"}}});
        let accepted = body("--arg city=Oslo", &asked).unwrap();
        assert_eq!(accepted, json!({"input_id": "k1", "answers": {"action": "accept", "content": {"city": "Oslo"}}}));
        assert_eq!(body("--decline", &asked).unwrap()["response"], json!({"action": "decline"}));
        let whole = body(r#"--answers-json {"action":"cancel"}"#, &asked).unwrap();
        assert_eq!(whole["answers"], json!({"action": "cancel"}));
        assert!(body("", &asked).is_err());
        assert!(body("--decline", &json!({"inputRequests": {"a": {}, "b": {}}})).is_err());
    }
}
