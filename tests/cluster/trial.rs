//! `caribou cluster`: replicas over servers of its own that answer, go on when one is killed, and leave nothing behind.

use std::process::Stdio;
use std::time::Duration;

use caribou_tests::{Answer, Setup, StdioFake, eventually, network, process, servers};
use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::timeout;

/// How long anything may take on a loaded machine.
const SOON: Duration = Duration::from_secs(120);

/// A replica as the table shows it.
struct Row {
    url: String,
    pid: u32,
}

fn row(line: &str) -> Option<Row> {
    let mut cells = line.split_whitespace();
    let _name = cells.next().filter(|name| name.starts_with("replica-"))?;
    Some(Row { url: cells.next()?.to_owned(), pid: cells.next()?.parse().ok()? })
}

async fn note(url: &str, thread: &str) -> Answer {
    let body = json!({ "name": "notes_note", "arguments": { "text": "hello" }, "thread_id": thread }).to_string();
    let request = network::unpooled_http_client().post(format!("{url}/api/mcp/tools/call"));
    Answer::read(request.header("content-type", "application/json").body(body).send().await.unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_one_command_survives_a_kill_and_leaves_nothing_behind() {
    let setup = Setup::new();
    let notes = StdioFake::new(setup.home(), "notes", json!({ "calls": { "note": ["default"] } }));
    let setup = setup.server("notes", notes.entry());
    let mut command = setup.command(&["cluster", "--replicas", "3"]);
    let installed = servers::target_folder().join("servers/usr");
    if installed.is_dir() {
        command.env("CARIBOU_SERVERS_DIR", installed);
    }
    let log = std::fs::File::create(setup.home().join("cluster.log")).unwrap();
    let mut cluster = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let log = || std::fs::read_to_string(setup.home().join("cluster.log")).unwrap_or_default();
    let mut lines = BufReader::new(cluster.stdout.take().unwrap()).lines();
    let mut rows = Vec::new();
    while rows.len() < 3 {
        let line = timeout(SOON, lines.next_line()).await.expect("a table within its time").unwrap();
        let line = line.unwrap_or_else(|| panic!("no table:\n{}", log()));
        rows.extend(row(&line));
    }

    // One session, whoever is asked.
    let mut holders = Vec::new();
    for replica in &rows {
        let answer = note(&replica.url, "t").await;
        holders.push(answer.json()["session"]["replica"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned());
    }
    assert!(holders[0] == holders[1] && holders[1] == holders[2], "{holders:?}");

    let pid = cluster.id().unwrap();
    process::signal(rows[0].pid, Signal::KILL);
    eventually(SOON, "word of the end", async || log().contains("replica-1 (pid ").then_some(())).await;
    for replica in &rows[1..] {
        // The thread that the dead one held is taken over once its lease has ended.
        let answered = eventually(SOON, "an answer of the others", async || {
            let answer = note(&replica.url, "t").await;
            answer.json()["session"]["replica"].as_str().map(str::to_owned)
        });
        assert_ne!(answered.await, "");
    }

    let below = process::descendants(pid);
    assert!(below.len() > 6, "replicas, guards, children and servers: {below:?}");
    process::signal(pid, Signal::INT);
    let status = timeout(SOON, cluster.wait()).await.expect("it ends within its time").unwrap();
    assert!(status.success(), "{status}:\n{}", log());
    let left: Vec<u32> = below.into_iter().filter(|pid| process::is_alive(*pid)).collect();
    assert_eq!(left, [] as [u32; 0], "{}", log());
}
