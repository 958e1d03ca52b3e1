//! What a person at a terminal is told when a replica serves, and that programs are told nothing but their lines.

use std::process::Stdio;
use std::time::Duration;

use caribou_tests::caribou::binary;
use caribou_tests::{Setup, third_party};
use serde_json::json;

const ENOUGH: Duration = Duration::from_secs(60);

/// The last words of the screen.
const END: &str = "Ctrl-C stops Caribou";

/// Runs a program on a terminal until it has said a word, then asks it to end. Shows all that it wrote.
const ON_A_TERMINAL: &str = r#"
import os, pty, signal, sys
word, program = sys.argv[1].encode(), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(program[0], program)
signal.alarm(50)
shown, asked = b"", False
while True:
    try:
        some = os.read(terminal, 65536)
    except OSError:
        break
    if not some:
        break
    shown += some
    if word in shown and not asked:
        asked = True
        os.kill(pid, signal.SIGTERM)
os.waitpid(pid, 0)
sys.stdout.buffer.write(shown)
"#;

#[tokio::test]
async fn a_terminal_shows_one_screen_and_the_lines_that_programs_read() {
    let setup = Setup::new().server("off", json!({ "command": "npx", "enabled": false })).server("wrong", json!({}));
    let caribou = setup.command(&["serve"]);
    let mut terminal = third_party::python_sdk();
    let program = binary("caribou-under-test");
    terminal.args(["-c", ON_A_TERMINAL, END]).arg(program).args(["serve", "--listen", "127.0.0.1:0"]);
    for (name, value) in caribou.as_std().get_envs() {
        match value {
            Some(value) => terminal.env(name, value),
            None => terminal.env_remove(name),
        };
    }
    let run = terminal.current_dir(setup.home().path()).stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(ENOUGH, run).await.expect("it ends").unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("LISTENING http://127.0.0.1:") && shown.contains(END), "{shown}");
    for told in
        ["REST ", "MCP ", "/mcp for all servers", "and 1 left out", "store        SQLite in ", "off; `grpc.listen`"]
    {
        assert!(shown.contains(told), "{told}: {shown}");
    }
}

#[tokio::test]
async fn a_log_that_is_no_terminal_holds_no_screen() {
    let caribou = Setup::new().start().await;
    let log = caribou.log();
    assert!(log.contains("serving") && !log.contains(END), "{log}");
}
