//! The gRPC API as it looks from another language: a client made from `proto/` by the gRPC tools of Python.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use caribou_tests::third_party::python_grpc;
use caribou_tests::{Home, Setup, StdioFake};
use serde_json::{Value, json};
use tokio::time::timeout;

/// A Python that starts, on a loaded machine.
const SOON: Duration = Duration::from_secs(120);

/// Runs Python; what it prints.
async fn python(arguments: &[&Path]) -> String {
    let running = python_grpc().args(arguments).stdin(Stdio::null()).kill_on_drop(true).output();
    let ended = timeout(SOON, running).await.expect("Python ends in time").unwrap();
    assert!(ended.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

#[tokio::test]
async fn a_client_of_another_language_lists_calls_and_follows_progress() {
    let script = json!({ "calls": {
        "bump": [{ "text": "$N" }],
        "work": [{ "progress": 1 }, { "progress": 2 }, { "text": "done" }],
    } });
    let setup = Setup::new().variable("CARIBOU_GRPC_LISTEN", "127.0.0.1:0");
    let fake = StdioFake::new(setup.home(), "fake", script);
    let caribou = setup.server("fake", fake.entry()).start().await;
    let address = caribou.grpc_url().await.trim_start_matches("grpc://").to_owned();

    let (made, root) = (Home::new(), Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    let proto = root.join("proto");
    let option = |name: &str, value: &Path| format!("--{name}={}", value.display());
    let out = [option("proto_path", &proto), option("python_out", made.path()), option("grpc_python_out", made.path())];
    let mut arguments: Vec<&Path> = ["-m", "grpc_tools.protoc"].map(Path::new).into();
    arguments.extend(out.iter().map(Path::new));
    let definitions = proto.join("caribou/v1/tools.proto");
    arguments.push(&definitions);
    python(&arguments).await;

    let client = root.join("tests/contract/grpc_client.py");
    let told: Value = serde_json::from_str(&python(&[&client, Path::new(&address), made.path()]).await).unwrap();
    assert_eq!(told["tools"], json!(["fake_bump", "fake_work"]), "{told}");
    assert_eq!((&told["result"]["content"][0]["text"], &told["epoch"]), (&json!("1"), &json!(1)), "{told}");
    assert_eq!(told["events"], json!(["progress", "progress", "result"]), "{told}");
    let seen: Vec<_> = told["progress"].as_array().unwrap().iter().map(|step| step["progress"].as_f64()).collect();
    assert_eq!(seen, [Some(1.0), Some(2.0)], "{told}");
    assert_eq!(told["last"]["content"][0]["text"], "done", "{told}");
    assert_eq!(
        (&told["refused"]["status"], &told["refused"]["caribou-code"]),
        (&json!("NOT_FOUND"), &json!("not_found"))
    );
}
