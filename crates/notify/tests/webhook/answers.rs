//! What is sent, and what each answer means.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caribou_ports::event_sink::{EventSink as _, Launched, Run};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tokio::net::TcpListener;

use crate::receiver::{Answer, Asked, receiver};
use crate::{OLDER, SECRET, told, webhook};

/// What a receiver that knows one of the secrets makes of a request: Standard Webhooks, verification.
fn is_signed(asked: &Asked, secret: &str) -> bool {
    let header = |name: &str| asked.headers[name].as_str();
    let key = STANDARD.decode(secret.trim_start_matches("whsec_")).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).as_bytes());
    mac.update(&asked.body);
    let wanted = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    header("webhook-signature").split(' ').any(|signature| signature == wanted)
}

async fn launch(answer: Answer, has_look_up: bool) -> Launched {
    let address = receiver(move |_| answer.clone()).await;
    webhook(&address, has_look_up).launch(&told(1, 0)).await
}

async fn look_up(answer: Answer) -> Run {
    let address = receiver(move |_| answer.clone()).await;
    webhook(&address, true).look_up(&told(1, 0), "r1").await
}

fn with(status: u16) -> Answer {
    Answer::With(status, String::new())
}

#[tokio::test]
async fn requests_are_signed_with_each_secret_and_repeats_keep_id_and_body() {
    // Contract 6.9, idempotency key; Standard Webhooks, headers.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = seen.clone();
    let address = receiver(move |asked| {
        sees.lock().unwrap().push(asked);
        with(503)
    })
    .await;
    let webhook = webhook(&address, true);
    for _ in 0..2 {
        assert!(matches!(webhook.launch(&told(1, 0)).await, Launched::Unclear(_)));
    }
    webhook.launch(&told(1, 1)).await;
    webhook.look_up(&told(1, 1), "r/1").await;
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|asked| is_signed(asked, SECRET) && is_signed(asked, OLDER)));
    let ids: Vec<&str> = seen.iter().map(|asked| asked.headers["webhook-id"].as_str()).collect();
    let key = told(1, 0).key.to_string();
    assert_eq!((ids[0], ids[1]), (key.as_str(), key.as_str()));
    assert_eq!(ids[2], told(1, 1).key.to_string());
    assert_eq!(seen[0].body, seen[1].body);
    let body: serde_json::Value = serde_json::from_slice(&seen[0].body).unwrap();
    assert_eq!(body["data"]["event"]["result"]["n"], 1);
    let asked: Vec<(&str, &str)> = seen.iter().map(|asked| (asked.method.as_str(), asked.path.as_str())).collect();
    assert_eq!((asked[0], asked[3]), (("POST", "/events"), ("GET", "/threads/t%201/runs/r%2F1")));
}

#[tokio::test]
async fn every_answer_to_a_launch_means_what_the_table_says() {
    // Contract 6.9, claimed/retry and [N]; architecture.md §2, task events.
    let run = || Answer::With(202, r#"{"run_id":"r1"}"#.to_owned());
    assert_eq!(launch(run(), true).await, Launched::Run { run_id: "r1".to_owned() });
    assert_eq!(launch(run(), false).await, Launched::Delivered);
    for status in [200, 202, 204] {
        assert_eq!(launch(with(status), true).await, Launched::Delivered, "{status}");
    }
    assert_eq!(launch(with(409), true).await, Launched::Busy);
    for status in [400, 401, 403, 404, 410, 422, 501] {
        assert!(matches!(launch(with(status), true).await, Launched::Gone(_)), "{status}");
    }
    for status in [408, 429, 500, 502, 503] {
        assert!(matches!(launch(with(status), true).await, Launched::Unclear(_)), "{status}");
    }
    for status in [301, 307, 405, 413] {
        assert!(matches!(launch(with(status), true).await, Launched::Refused(_)), "{status}");
    }
    let endless = Answer::With(202, " ".repeat(70_000));
    assert!(matches!(launch(endless, true).await, Launched::Refused(_)));
}

#[tokio::test]
async fn a_launch_whose_answer_is_lost_is_unclear() {
    // Contract 6.9, [N]: the row stays `launching`.
    for answer in [Answer::Dropped, Answer::Torn] {
        assert!(matches!(launch(answer, true).await, Launched::Unclear(_)));
    }
    let nobody = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap();
    let launched = webhook(&nobody.to_string(), true).launch(&told(1, 0)).await;
    let Launched::Unclear(why) = launched else { panic!("{launched:?}") };
    assert!(!why.contains(&nobody.port().to_string()), "an address may hold a login: {why}");
}

#[tokio::test]
async fn a_run_is_looked_up() {
    // Contract 6.9, dispatched.
    let said = |word: &str| Answer::With(200, format!(r#"{{"status":"{word}"}}"#));
    assert_eq!(look_up(said("running")).await, Run::Running);
    assert_eq!(look_up(said("success")).await, Run::Succeeded);
    assert!(matches!(look_up(said("interrupted")).await, Run::Failed(_)));
    for status in [404, 410] {
        assert_eq!(look_up(with(status)).await, Run::NotFound, "{status}");
    }
    for answer in [with(200), with(204), with(302), with(401), with(500), Answer::Dropped, Answer::Torn] {
        assert!(matches!(look_up(answer.clone()).await, Run::Error(_)), "{answer:?}");
    }
    let odd = receiver(|_| with(200)).await;
    assert!(matches!(webhook(&odd, true).look_up(&told(1, 0), "..").await, Run::Error(_)));
}
