//! Clients that others wrote, at two replicas behind a balancer without stickiness: hardly two requests of a client
//! come to the same one.

use caribou_tests::round_robin::{Passed, RoundRobin};
use caribou_tests::{Caribou, Home, Postgres, Redis, Setup, know_one_another, third_party};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::process::Command;

use super::clients::{check, python, told, typescript};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Where all servers are one, and where one is alone; with the prefix that the names of its tools have.
const PLACES: [(&str, &str); 2] = [("/mcp", "everything_"), ("/mcp/everything", "")];

/// How each SDK calls an era, and the revision that it agrees on.
const ERAS: [(&str, &str); 2] = [("legacy", "2025-11-25"), ("auto", "2026-07-28")];

/// Two replicas as an operator sets them up: what they share, and the folders of threads on one volume.
struct Stand {
    replicas: [Caribou; 2],
    volume: Home,
    _database: Postgres,
    _redis: Redis,
}

impl Stand {
    async fn start(server: &str, entry: Value) -> Self {
        let (database, redis) = tokio::join!(Postgres::start(), Redis::start());
        let (url, volume) = (database.url("postgres"), Home::new());
        let root = volume.path().to_str().expect("a test's own folder has a plain name").to_owned();
        let migrated =
            Setup::new().variable("CARIBOU_DATABASE_URL", &url).command(&["migrate"]).output().await.unwrap();
        assert!(migrated.status.success(), "{migrated:?}");
        let replica = async || {
            let setup = Setup::new().server(server, entry.clone()).variable("CARIBOU_DATABASE_URL", &url);
            let setup =
                setup.variable("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0").variable("CARIBOU_CLUSTER_SECRET", SECRET);
            let setup = setup.variable("CARIBOU_REDIS_URL", &redis.url()).variable("CARIBOU_THREADS_ROOT", &root);
            setup.start().await
        };
        let replicas = <[Caribou; 2]>::from(tokio::join!(replica(), replica()));
        know_one_another(&replicas).await;
        for caribou in &replicas {
            assert!(!caribou.tool_names().await.is_empty(), "{}", caribou.log());
        }
        Self { replicas, volume, _database: database, _redis: redis }
    }

    /// A balancer before both. Each client has its own, so that what it met can be told.
    async fn door(&self) -> RoundRobin {
        RoundRobin::before(self.replicas.each_ref().map(Caribou::url)).await
    }

    /// What a client tells that was started with the address of `path`.
    async fn told(&self, door: &RoundRobin, path: &str, client: impl FnOnce(&str) -> Command) -> Value {
        told(&self.replicas.each_ref(), client(&format!("{}{path}", door.url()))).await
    }
}

/// Both replicas had something to do for a client, of these requests where some are named.
fn both_served(door: &RoundRobin, what: Option<&str>) {
    let passed: Vec<Passed> = door.passed();
    let served =
        |replica| passed.iter().any(|passed| passed.replica == replica && what.is_none_or(|w| w == passed.what));
    assert!(served(0) && served(1), "{passed:?}");
}

fn second_typescript(script: &str) -> Command {
    let mut command = Command::new("node");
    command.args(["--input-type=module", "--eval", script, "--"]).arg(third_party::second_typescript_sdk());
    command
}

fn langchain(script: &str) -> Command {
    let mut command = third_party::langchain();
    command.args(["-c", script]);
    command
}

/// Makes the command of a client from the address that it is to use.
type Client = Box<dyn Fn(&str) -> Command>;

/// Every SDK in each era that it speaks, after the revision that it agrees on.
fn sdks(prefix: &'static str) -> Vec<(&'static str, Client)> {
    let mut sdks: Vec<(&str, Client)> = Vec::new();
    sdks.push(("2025-11-25", Box::new(move |url| typescript(url, include_str!("client.mjs"), prefix))));
    for (era, version) in ERAS {
        sdks.push((version, Box::new(move |url| python(url, era, prefix))));
        let second = move |url: &str| {
            let mut command = second_typescript(include_str!("client_v2.mjs"));
            command.args([url, prefix, era]);
            command
        };
        sdks.push((version, Box::new(second)));
    }
    sdks
}

#[tokio::test]
async fn the_sdks_list_and_call() {
    let stand = Stand::start("everything", third_party::everything()).await;
    for (path, prefix) in PLACES {
        let seen = async |(version, client): (&str, Client)| {
            let door = stand.door().await;
            check(&stand.told(&door, path, client).await, version, prefix);
            both_served(&door, None);
        };
        join_all(sdks(prefix).into_iter().map(seen)).await;
    }
}

#[tokio::test]
async fn the_inspector_lists_and_calls() {
    let stand = Stand::start("everything", third_party::everything()).await;
    for (path, prefix) in PLACES {
        let seen = async |era: &str| {
            let door = stand.door().await;
            let asks = async |arguments: &[&str]| {
                let asked = stand.told(&door, path, |url| {
                    let mut command = third_party::inspector(&stand.volume);
                    command.args([url, "--transport", "http", "--protocol-era", era, "--format", "json", "--quiet"]);
                    command.args(["--method"]).args(arguments);
                    command
                });
                asked.await["result"].take()
            };
            let listed = asks(&["tools/list"]).await;
            let echo = format!("{prefix}echo");
            let is_listed = listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == echo);
            assert!(is_listed, "{listed}");
            let called = asks(&["tools/call", "--tool-name", &echo, "--tool-arg", "message=moss"]).await;
            assert_eq!(called["content"], json!([{ "type": "text", "text": "Echo: moss" }]), "{called}");
            both_served(&door, None);
        };
        tokio::join!(seen("legacy"), seen("modern"));
    }
}

#[tokio::test]
async fn the_adapters_of_langchain_list_and_call() {
    let stand = Stand::start("everything", third_party::everything()).await;
    for (path, prefix) in PLACES {
        let door = stand.door().await;
        let told = stand.told(&door, path, |url| {
            let mut command = langchain(include_str!("client_langchain.py"));
            command.args([url, prefix]);
            command
        });
        let told = told.await;
        assert!(told["tools"].as_array().unwrap().contains(&json!(format!("{prefix}echo"))), "{told}");
        assert_eq!(told["echo"], "Echo: moss", "{told}");
        both_served(&door, None);
    }
}

#[tokio::test]
async fn each_thread_reads_back_what_it_noted_in_memory_and_nothing_else() {
    // Invariant P1; the graph of each thread is a file in its folder, wherever its process lives.
    let stand = Stand::start("memory", third_party::memory_by_name()).await;
    let (birch, fir) = (stand.door().await, stand.door().await);
    let url = |door: &RoundRobin| format!("{}/mcp/memory", door.url());
    let doors = json!({ "birch": url(&birch), "fir": url(&fir) });
    let mut command = langchain(include_str!("memory_langchain.py"));
    command.arg(doors.to_string());
    let read = told(&stand.replicas.each_ref(), command).await;
    for (thread, door) in [("birch", birch), ("fir", fir)] {
        let noted = json!([format!("{thread} 0"), format!("{thread} 1")]);
        assert_eq!(read[thread], json!([noted, noted]), "{read}");
        both_served(&door, Some("tools/call"));
        let file = format!("users/default/threads/{thread}/user-data/workspace/memory.jsonl");
        let graph = std::fs::read_to_string(stand.volume.join(&file)).unwrap();
        assert_eq!((graph.lines().count(), graph.matches(thread).count()), (2, 2), "{graph}");
    }
    // One process for each thread, which both replicas know of.
    for caribou in &stand.replicas {
        let sessions = caribou.get("/api/mcp/sessions").await.json();
        let sessions = sessions["sessions"].as_array().unwrap();
        let mut epochs: Vec<(&str, u64)> =
            sessions.iter().filter_map(|one| Some((one["thread_id"].as_str()?, one["epoch"].as_u64()?))).collect();
        epochs.sort_unstable();
        assert_eq!(epochs, [("birch", 1), ("fir", 1)], "{sessions:?}");
    }
}

/// How often a question that came from one replica was answered at the other, of so many; an answer is passed on as
/// `answer`.
fn crossed(door: &RoundRobin, answer: &str) -> (usize, usize) {
    let passed = door.passed();
    let rounds: Vec<&Passed> = passed.iter().filter(|p| ["tools/call", answer].contains(&p.what.as_str())).collect();
    let rounds: Vec<&[&Passed]> = rounds.chunks(2).collect();
    let is_round = |round: &[&Passed]| round[0].what == "tools/call" && round.get(1).is_some_and(|p| p.what == answer);
    assert!(rounds.iter().all(|round| is_round(round)), "{passed:?}");
    (rounds.iter().filter(|round| round[0].replica != round[1].replica).count(), rounds.len())
}

#[tokio::test]
async fn a_question_is_asked_by_one_replica_and_answered_at_the_other() {
    // mcp.md §17, B4 and B6: a server of the legacy era asks clients of both.
    const NAMES: [&str; 3] = ["ann", "bob", "cleo"];
    let stand = Stand::start("everything", third_party::everything()).await;
    for (path, prefix) in PLACES {
        let asked = async |(era, version): (&str, &str), mut client: Command| {
            let door = stand.door().await;
            let told = stand.told(&door, path, |url| {
                client.args([url, era, prefix]).args(NAMES);
                client
            });
            let told = told.await;
            assert_eq!(
                (&told["version"], told["asked"].as_array().map(Vec::len)),
                (&version.into(), Some(3)),
                "{told}"
            );
            for (n, name) in NAMES.iter().enumerate() {
                assert!(told["ended"][n].as_str().unwrap().contains(&format!("- Name: {name}")), "{told}");
            }
            // A client of the modern era answers by asking again. Another request may come between the two, but once.
            let (crossed, of) = crossed(&door, if era == "legacy" { "answer" } else { "tools/call" });
            assert!(crossed >= 2 && of == 3, "{:?}", door.passed());
        };
        let of_python = ERAS.map(|era| {
            let mut python = third_party::python_sdk();
            python.args(["-c", include_str!("asked.py")]);
            asked(era, python)
        });
        let second = ERAS.map(|era| asked(era, second_typescript(include_str!("asked_v2.mjs"))));
        tokio::join!(join_all(of_python), join_all(second));
    }
}
