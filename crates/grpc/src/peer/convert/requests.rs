//! One request in a session, on its way to the owner.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::Secret;
use caribou_core::ids::{BootId, Epoch};
use caribou_ports::mcp::{ProgressSink, RawRequest, ToolCall};
use caribou_ports::peers::{Exchange, PeerRequest};
use caribou_proto::peer::v1;
use caribou_proto::peer::v1::request::What;
use serde_json::value::RawValue;

use super::Malformed;
use super::sessions::{header_messages, headers, json, key, key_message, millis};

/// The message of an exchange with `boot`.
pub(in crate::peer) fn request(boot: &BootId, exchange: &Exchange) -> v1::Request {
    let (what, headers, progress) = asked(&exchange.request);
    v1::Request {
        to_boot: boot.to_string(),
        key: Some(key_message(&exchange.key)),
        epoch: exchange.epoch.0,
        call_id: exchange.call_id.clone(),
        again: exchange.is_again,
        hops: exchange.hops,
        within_ms: millis(exchange.within),
        progress: progress.is_some(),
        headers: header_messages(headers),
        what: Some(what),
    }
}

/// What a request says, its headers, and who listens to its progress.
fn asked(request: &PeerRequest) -> (What, &[(String, Secret)], Option<&ProgressSink>) {
    let text = |json: &RawValue| json.get().to_owned();
    match request {
        PeerRequest::CallTool(call) => {
            let member = |(name, json): &(String, Box<RawValue>)| v1::Member { name: name.clone(), json: text(json) };
            let message = v1::CallTool {
                name: call.name.to_string(),
                arguments: call.arguments.as_deref().map(text),
                meta: call.meta.iter().map(member).collect(),
                task: call.task.as_deref().map(text),
            };
            (What::CallTool(message), &call.headers, call.progress.as_ref())
        }
        PeerRequest::Request(raw) => {
            let message = v1::Raw { method: raw.method.to_string(), params: text(&raw.params) };
            (What::Raw(message), &raw.headers, raw.progress.as_ref())
        }
        PeerRequest::ListTools => (What::ListTools(v1::ListTools {}), &[], None),
        PeerRequest::TaskQuestions(task_id) => {
            (What::TaskQuestions(v1::TaskQuestions { task_id: task_id.clone() }), &[], None)
        }
        PeerRequest::AnswerTask { task_id, question, answer } => {
            let (task_id, question) = (task_id.clone(), question.clone());
            (What::AnswerTask(v1::AnswerTask { task_id, question, answer: text(answer) }), &[], None)
        }
    }
}

/// The exchange that a message asks for. Its progress, if somebody listens, goes to `listener`.
pub(in crate::peer) fn exchange(request: v1::Request, listener: ProgressSink) -> Result<Exchange, Malformed> {
    let headers = headers(request.headers);
    let progress = request.progress.then_some(listener);
    let asked = match request.what.ok_or(Malformed("it asks for nothing"))? {
        What::CallTool(call) => {
            let member = |member: v1::Member| Ok((member.name, json(member.json)?));
            PeerRequest::CallTool(ToolCall {
                name: Arc::from(call.name),
                arguments: call.arguments.map(json).transpose()?,
                meta: call.meta.into_iter().map(member).collect::<Result<_, _>>()?,
                headers,
                progress,
                task: call.task.map(json).transpose()?,
            })
        }
        What::Raw(raw) => {
            let method = Cow::Owned(raw.method);
            PeerRequest::Request(RawRequest { method, params: json(raw.params)?, headers, progress })
        }
        What::ListTools(v1::ListTools {}) => PeerRequest::ListTools,
        What::TaskQuestions(asked) => PeerRequest::TaskQuestions(asked.task_id),
        What::AnswerTask(answered) => {
            let (task_id, question) = (answered.task_id, answered.question);
            PeerRequest::AnswerTask { task_id, question, answer: json(answered.answer)? }
        }
    };
    Ok(Exchange {
        key: key(request.key)?,
        epoch: Epoch(request.epoch),
        call_id: request.call_id,
        is_again: request.again,
        hops: request.hops,
        within: Duration::from_millis(request.within_ms),
        request: asked,
    })
}

#[cfg(test)]
mod tests {
    use caribou_core::ids::{Scope, ServerName, SessionKey};

    use super::*;

    fn over(request: PeerRequest) -> Exchange {
        let key = SessionKey { server: ServerName::from("s"), scope: Scope::new(None, None), credential: None };
        let sent = Exchange {
            key: key.clone(),
            epoch: Epoch(4),
            call_id: "c".to_owned(),
            is_again: true,
            hops: 1,
            within: Duration::from_millis(1_500),
            request,
        };
        let back = exchange(super::request(&BootId::from("b"), &sent), Arc::new(|_| {})).unwrap();
        assert_eq!((&back.key, back.epoch, &*back.call_id), (&key, Epoch(4), "c"));
        assert_eq!((back.is_again, back.hops, back.within), (true, 1, Duration::from_millis(1_500)));
        back
    }

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_call_comes_over_byte_for_byte_with_its_headers() {
        // Invariant W1.
        let odd = r#"{ "z": 1.0, "a": 18446744073709551617, "z": null }"#;
        for (arguments, progress, task) in
            [(Some(odd), true, None), (Some("null"), false, Some(r#"{"ttl":1}"#)), (None, true, None)]
        {
            let call = ToolCall {
                name: "t".into(),
                arguments: arguments.map(raw),
                meta: vec![("traceparent".to_owned(), raw("\"00\""))],
                headers: vec![("X-A".to_owned(), Secret::new("hunter2"))],
                progress: progress.then(|| Arc::new(|_| {}) as ProgressSink),
                task: task.map(raw),
            };
            let PeerRequest::CallTool(back) = over(PeerRequest::CallTool(call)).request else { panic!("a call") };
            assert_eq!(back.arguments.as_deref().map(RawValue::get), arguments, "absent stays absent");
            assert_eq!(back.task.as_deref().map(RawValue::get), task);
            assert_eq!((back.meta[0].0.as_str(), back.meta[0].1.get()), ("traceparent", "\"00\""));
            assert_eq!(back.headers, [("X-A".to_owned(), Secret::new("hunter2"))]);
            assert_eq!(back.progress.is_some(), progress, "whether somebody listens");
        }
    }

    #[test]
    fn every_other_request_comes_over_too() {
        let params = raw(r#"{"taskId":"t"}"#);
        let asked = RawRequest { method: "tasks/get".into(), params, headers: Vec::new(), progress: None };
        let PeerRequest::Request(back) = over(PeerRequest::Request(asked)).request else { panic!("a request") };
        assert_eq!((&*back.method, back.params.get()), ("tasks/get", r#"{"taskId":"t"}"#));
        assert!(matches!(over(PeerRequest::ListTools).request, PeerRequest::ListTools));
        let questions = over(PeerRequest::TaskQuestions("t".to_owned())).request;
        assert!(matches!(questions, PeerRequest::TaskQuestions(task) if task == "t"));
        let (task_id, question) = ("t".to_owned(), "q".to_owned());
        let answer = PeerRequest::AnswerTask { task_id, question, answer: raw("[1.0]") };
        let PeerRequest::AnswerTask { task_id, question, answer } = over(answer).request else { panic!("an answer") };
        assert_eq!((&*task_id, &*question, answer.get()), ("t", "q", "[1.0]"));
    }

    #[test]
    fn a_message_without_its_request_is_refused() {
        assert!(exchange(v1::Request::default(), Arc::new(|_| {})).is_err());
    }
}
