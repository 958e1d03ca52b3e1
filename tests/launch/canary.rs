//! A canary is a file that a text in the arguments or variables would make.
//!
//! A line is the arguments of npx, split at spaces; `'…'` holds one argument together.

use caribou_core::launch::{Allowlist, Refusal, Request, judge};
use rstest::rstest;

use crate::npm::Npm;
use crate::registry::Registry;

/// What is accepted, and the words that must reach the server.
const ACCEPTED: [(&str, &[&str]); 19] = [
    ("-y @moss/server", &[]),
    ("reindeer@1.0.0", &[]),
    ("--yes --package=@moss/server moss-server", &[]),
    ("-p @moss/server moss-server", &[]),
    ("-p reindeer reindeer '$(touch CANARY)'", &["$(touch CANARY)"]),
    ("-y @moss/server -c config.json", &["-c", "config.json"]),
    ("-y @moss/server -e production", &["-e", "production"]),
    ("-y @moss/server -- -c config.json", &["--", "-c", "config.json"]),
    ("-y @moss/server -- --port 0", &["--", "--port", "0"]),
    ("-- @moss/server --eval expr", &["--eval", "expr"]),
    ("@moss/server --call not-a-launcher-flag", &["--call", "not-a-launcher-flag"]),
    ("--yes reindeer --eval expr", &["--eval", "expr"]),
    ("--parseable @moss/server -c config.json", &["-c", "config.json"]),
    ("-desc -porcelain reindeer -c config.json", &["-c", "config.json"]),
    ("-C DIR @moss/server", &[]),
    ("-P @moss/server -c config.json", &["-c", "config.json"]),
    ("-y @moss/server -name value", &["-name", "value"]),
    ("-y @moss/server -exclude node_modules", &["-exclude", "node_modules"]),
    (
        "-y reindeer 'a b; touch CANARY' '$(touch CANARY)' '`touch CANARY`' '| touch CANARY'",
        &["a b; touch CANARY", "$(touch CANARY)", "`touch CANARY`", "| touch CANARY"],
    ),
];

/// What is refused, because it runs code.
const REFUSED: [&str; 37] = [
    "-c 'touch CANARY'",
    "--yes -c 'touch CANARY'",
    "--call 'touch CANARY'",
    "'--call=touch CANARY'",
    "'-c=touch CANARY'",
    "-yc 'touch CANARY'",
    "'-yc=touch CANARY'",
    "--yc 'touch CANARY'",
    "--c 'touch CANARY'",
    "-call 'touch CANARY'",
    "'---call=touch CANARY'",
    "-p reindeer -c 'touch CANARY'",
    "--package reindeer --call 'touch CANARY'",
    "--registry http://127.0.0.1:9 -c 'touch CANARY'",
    "--loglevel silly -c 'touch CANARY'",
    "--zzz -c 'touch CANARY'",
    "--scope - -c 'touch CANARY'",
    "-y=-c 'touch CANARY'",
    "'--yes=--call=touch CANARY'",
    "-y=-C DIR -c 'touch CANARY'",
    "-n reindeer -c 'touch CANARY'",
    "-n -- -c 'touch CANARY'",
    "-no true -c 'touch CANARY'",
    "-local true -c 'touch CANARY'",
    "'-- ' -c 'touch CANARY'",
    "--no-otp -- -c 'touch CANARY'",
    "--shell DIR/evil.sh reindeer",
    "--script-shell DIR/evil.sh reindeer",
    "--scr=DIR/evil.sh reindeer",
    "--no-script-shell DIR/evil.sh reindeer",
    "'-y ' reindeer --script-shell=DIR/evil.sh",
    "--no-otp -- reindeer --script-shell=DIR/evil.sh",
    "--yes=--no-otp reindeer --script-shell=DIR/evil.sh",
    "--browser reindeer x --script-shell=DIR/evil.sh",
    "--node-options=--require=DIR/evil.js reindeer",
    "--node-opt=--require=DIR/evil.js reindeer",
    "--No-no-node-options --require=DIR/evil.js reindeer",
];

/// What is refused though these releases of npm ignore it, or stop at it: another one need not.
const TRIPWIRES: [&str; 8] = [
    "--CALL 'touch CANARY'",
    "--eval 'touch CANARY'",
    "-e 'touch CANARY'",
    "--print 'touch CANARY'",
    "--node-arg 'touch CANARY'",
    "-cy 'touch CANARY'",
    "--cal 'touch CANARY'",
    "--not-an-npm-option value --call 'touch CANARY'",
];

/// Variables that are refused, with a value that runs code.
const VARIABLES: [(&str, &str); 5] = [
    ("NODE_OPTIONS", "--require=DIR/evil.js"),
    ("NPM_CONFIG_CALL", "touch CANARY"),
    ("npm_config_script_shell", "DIR/evil.sh"),
    ("Npm_Config_script-shell", "DIR/evil.sh"),
    ("npm_config_node_options", "--require=DIR/evil.js"),
];

#[rstest]
#[tokio::test]
async fn what_is_accepted_reaches_the_server_and_runs_nothing_else(#[values("contract", "machine")] npm: &str) {
    // Contract 3.7.
    let npm = Npm::installed(npm);
    let registry = Registry::start(&npm, npm.home()).await;
    for (line, expected) in ACCEPTED {
        let words = words(line);
        assert_eq!(verdict(&words, &[]), Ok(()), "{line}");
        let (output, canary) = npm.npx(&registry.url, &words, &[]).await;
        assert!(!canary, "{line}: a canary");
        let stdout = String::from_utf8(output.stdout).unwrap();
        let last = stdout.lines().last().unwrap_or_default();
        let seen: Vec<String> = serde_json::from_str(last)
            .unwrap_or_else(|_| panic!("{line}: {stdout}{}", String::from_utf8_lossy(&output.stderr)));
        assert_eq!(seen, expected, "{line}");
    }
}

#[rstest]
#[tokio::test]
async fn what_is_refused_for_an_option_runs_code(#[values("contract", "machine")] npm: &str) {
    // Contract 3.7.
    let npm = Npm::installed(npm);
    let registry = Registry::start(&npm, npm.home()).await;
    for (line, runs) in REFUSED.map(|line| (line, true)).into_iter().chain(TRIPWIRES.map(|line| (line, false))) {
        let words = words(line);
        assert!(matches!(verdict(&words, &[]), Err(Refusal::Flag(_))), "{line}");
        let (output, canary) = npm.npx(&registry.url, &words, &[]).await;
        assert_eq!(canary, runs, "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[rstest]
#[tokio::test]
async fn what_is_refused_for_a_variable_or_a_command_runs_code(#[values("contract", "machine")] npm: &str) {
    // Contract 3.6.
    let npm = Npm::installed(npm);
    let registry = Registry::start(&npm, npm.home()).await;
    for variable in VARIABLES {
        // A text to run leaves no room for a package.
        let words = words(if variable.0.ends_with("CALL") { "" } else { "reindeer" });
        assert!(matches!(verdict(&words, &[variable.0]), Err(Refusal::Variable(_))), "{variable:?}");
        let (output, canary) = npm.npx(&registry.url, &words, &[variable]).await;
        assert!(canary, "{variable:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let words = words("-p reindeer 'touch CANARY'");
    assert_eq!(verdict(&words, &[]), Err(Refusal::CommandWord));
    // npm quotes the command since its eleventh release.
    assert_eq!(npm.npx(&registry.url, &words, &[]).await.1, npm.major() < 11);
}

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in line.split('\'').enumerate() {
        if i % 2 == 0 {
            words.extend(part.split_whitespace().map(str::to_owned));
        } else {
            words.push(part.to_owned());
        }
    }
    words
}

pub(crate) fn verdict(words: &[String], variables: &[&str]) -> Result<(), Refusal> {
    let args = words.iter().map(String::as_str).collect();
    judge(&Request { command: "npx", args, variables: variables.to_vec() }, &Allowlist::default())
}
