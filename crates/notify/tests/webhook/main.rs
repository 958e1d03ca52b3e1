//! The webhook against a receiver on this machine: each answer, and all of them at random.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions, not the functions beside them")]

mod answers;
mod random;
mod receiver;

use caribou_core::config::Secret;
use caribou_core::ids::Scope;
use caribou_core::notification::Key;
use caribou_core::task::TaskId;
use caribou_notify::{LookUpUrl, Webhook, WebhookOptions, WebhookSecret, WebhookUrl};
use caribou_ports::event_sink::Told;

/// A secret of the standard.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Another one.
const OLDER: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

fn webhook(address: &str, has_look_up: bool) -> Webhook {
    let secret = |text| WebhookSecret::parse(&Secret::new(text)).unwrap();
    let look_up = format!("http://{address}/threads/{{thread_id}}/runs/{{run_id}}");
    let options = WebhookOptions {
        url: WebhookUrl::parse(Secret::new(format!("http://{address}/events"))).unwrap(),
        secrets: vec![secret(SECRET), secret(OLDER)],
        look_up: has_look_up.then(|| LookUpUrl::parse(Secret::new(look_up)).unwrap()),
    };
    Webhook::new(options, reqwest::Client::builder().no_proxy()).unwrap()
}

fn told(number: u32, attempt: u32) -> Told {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    let task = TaskId(id);
    Told {
        key: Key { task, seq: 1, attempt },
        scope: Scope::new(Some("ann"), Some("t 1")),
        server: "jobs".into(),
        run_id: None,
        body: format!(r#"{{"task_id":"{task}","task_name":"report","status":"completed","result":{{"n":{number}}}}}"#),
        at_us: 1_764_486_000_000_000,
    }
}
