//! The policy's tables: contract 3.7, launches that were once seen to slip through, and what npm reads beyond both.
//!
//! A line is a command and its arguments, split at spaces; `'…'` holds one argument together.

use std::path::Path;
use std::sync::Arc;

use super::Refusal::{CommandShape, CommandWord, Flag, NoCommand, Variable};
use super::{Allowlist, Refusal, Request, judge};
use crate::config::{ServerConfig, Source, parse};

/// Splits a line as a shell would, quotes only.
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

fn verdict_in(line: &str, variables: &[&str], allowlist: &Allowlist) -> Result<(), Refusal> {
    let words = words(line);
    let mut words = words.iter().map(String::as_str);
    let command = words.next().unwrap_or_default();
    judge(&Request { command, args: words.collect(), variables: variables.to_vec() }, allowlist)
}

fn verdict(line: &str) -> Result<(), Refusal> {
    verdict_in(line, &[], &Allowlist::extended("python, node, perl"))
}

fn assert_accepted(lines: &[&str]) {
    for line in lines {
        assert_eq!(verdict(line), Ok(()), "{line}");
    }
}

fn assert_flags(lines: &[(&str, &'static str)]) {
    for (line, flag) in lines {
        assert_eq!(verdict(line), Err(Flag(flag)), "{line}");
    }
}

#[test]
fn what_the_contract_accepts_is_accepted() {
    // Contract 3.7.
    assert_accepted(&[
        "npx -y @modelcontextprotocol/server-github",
        "npx --yes --package=@scope/pkg server-bin",
        "npx -p @scope/pkg server-bin",
        "npx -y @scope/server -c config.json",
        "npx -y @scope/server -e production",
        "npx -y @scope/server -- -c config.json",
        "npx -- @scope/server --eval expr",
        "npx @scope/server --call not-a-launcher-flag",
        "npx --yes some-package --eval expr",
        "npx --parseable @scope/server -c config.json",
        "npx -C /srv/prefix @scope/server",
        "npx -P @scope/server -c config.json",
        "npx -y @scope/server -name value",
        "npx -y @scope/server -exclude node_modules",
        "uvx mcp-server-fetch",
        "uvx --from mcp-server-git mcp-server-git --repository /repo",
        "uvx -p 3.12 mcp-server-time",
        "uvx --python 3.12 mcp-server-time --local-timezone UTC",
        "uvx -c constraints.txt mcp-server-fetch",
        "uvx mcp-server-x -e prod",
        "uvx --from pkg tool --print table",
        "uvx mcp-server-git -repo /srv/repo",
        "python -m trusted_mcp_server",
    ]);
}

#[test]
fn options_that_are_code_are_refused_by_name() {
    // Contract 3.7.
    assert_flags(&[
        ("npx -c 'printf canary'", "-c"),
        ("npx --yes -c 'printf canary'", "-c"),
        ("npx --call 'printf canary'", "--call"),
        ("npx '--call=printf canary'", "--call"),
        ("npx '-c=printf canary'", "-c"),
        ("npx --yes --eval 1", "--eval"),
        ("npx -e 1", "-e"),
        ("npx --print 1", "--print"),
        ("npx --node-arg -e 1", "--node-arg"),
        ("npx --node-options=--require=/tmp/x.js", "--node-options"),
        ("npx --shell /tmp/x.sh", "--shell"),
        ("npx --CALL x", "--call"),
        ("npx -p @scope/pkg -c x", "-c"),
        ("npx --package @scope/pkg --call x", "--call"),
        ("npx --registry http://127.0.0.1 -c x", "-c"),
        ("npx -w workspace-a --call x", "--call"),
        ("npx --loglevel silly -c x", "-c"),
        ("npx --not-an-npm-option value --call x", "--call"),
        ("uvx --eval print(1) some-tool", "--eval"),
        ("python -c 1", "-c"),
        ("python -p whatever", "-p"),
        ("node -p 1", "-p"),
        ("node -p=1", "-p"),
        ("node -pe 1", "-p"),
        ("node -ep 1", "-e"),
        ("python -Ic 1", "-c"),
        ("perl -we 1", "-e"),
        ("node server.js --Eval=1", "--eval"),
    ]);
}

#[test]
fn npm_finds_code_where_the_contract_does_not_look() {
    // Beyond contract 3.2 to 3.4: architecture.md §9, npx launch policy.
    assert_flags(&[
        // Joined letters, any number of dashes, the beginning of a name.
        ("npx -yc x", "-c"),
        ("npx -cy x", "-c"),
        ("npx --yc x", "-c"),
        ("npx -gc=x", "-c"),
        ("npx --c x", "-c"),
        ("npx -call x", "--call"),
        ("npx ---call=x", "--call"),
        ("npx --cal x", "--call"),
        ("npx --script-shell /tmp/x.sh pkg", "--script-shell"),
        ("npx --scr=/tmp/x.sh pkg", "--script-shell"),
        ("npx --node-opt=--require=/tmp/x.js pkg", "--node-options"),
        ("npx --node=--require=/tmp/x.js pkg", "--node-options"),
        // A `no-` that means yes.
        ("npx --no-script-shell /tmp/x.sh pkg", "--script-shell"),
        ("npx --No-no-node-options --require=/tmp/x.js pkg", "--node-options"),
        // An option inside the value of another.
        ("npx '-y=-c' x", "-c"),
        ("npx '--yes=--call=x'", "--call"),
        ("npx '--yes=--yes=--call=x'", "--call"),
        ("npx '-y=-C' /tmp -c x", "-c"),
        // A word with a dash is no value, and a lone dash is no end.
        ("npx --zzz -c x", "-c"),
        ("npx --scope - -c x", "-c"),
        ("npx - --script-shell=/tmp/x.sh pkg", "--script-shell"),
        // Switches that are none.
        ("npx -n pkg -c x", "-c"),
        ("npx -n -- -c x", "-c"),
        ("npx -no true -c x", "-c"),
        ("npx -local true -c x", "-c"),
        // What looks like the end, and is not.
        ("npx '-- ' -c x", "-c"),
        ("npx '-y ' pkg --script-shell=/tmp/x.sh", "--script-shell"),
        ("npx --no-otp -- -c x", "-c"),
        ("npx --no-otp -- pkg --script-shell=/tmp/x.sh", "--script-shell"),
        ("npx --yes=--no-otp a b --script-shell=/tmp/x.sh", "--script-shell"),
        ("npx --browser a b --script-shell=/tmp/x.sh", "--script-shell"),
    ]);
    assert_accepted(&[
        "npx --ca /etc/ca.pem pkg",
        "npx --cache /tmp/cache pkg",
        "npx --no-install pkg",
        "npx --node-gyp=/x pkg",
        "npx --registry=http://127.0.0.1 -- pkg -c config.json",
        "npx -desc -porcelain pkg -c config.json",
    ]);
}

#[test]
fn a_command_beside_its_package_is_a_name_and_no_text() {
    // Beyond contract 3.3: architecture.md §9, npx launch policy.
    for line in ["npx -p pkg 'touch x'", "npx --package=pkg -- '$(id)'", "npx --p pkg A=B", "npx -p pkg 'a\nb'"] {
        assert_eq!(verdict(line), Err(CommandWord), "{line}");
    }
    let by_variable = verdict_in("npx 'touch x'", &["NPM_CONFIG_PACKAGE"], &Allowlist::default());
    assert_eq!(by_variable, Err(CommandWord));
    assert_accepted(&[
        "npx -p pkg ./bin/server-1.2_x '$(id)'",
        "npx 'pkg@>=1 <2'",
        "npx 'git+ssh://host/a.git#semver:^1'",
    ]);
}

#[test]
fn a_command_is_one_name_on_the_list() {
    // Contract 3.1.
    let judged =
        |command| judge(&Request { command, args: vec!["-y", "pkg"], variables: vec![] }, &Allowlist::default());
    for command in ["", " ", "\n"] {
        assert_eq!(judged(command), Err(NoCommand), "{command:?}");
    }
    let shapes = [
        "/bin/bash",
        "npx -y",
        "/tmp/attacker-controlled/npx",
        "./npx",
        "../npx",
        " npx",
        "npx ",
        "npx\n",
        "npx;id",
        "a\\npx",
        "npx|x",
        "npx&",
        "`npx`",
        "$NPX",
        "npx>x",
        "npx<x",
        "npx\u{a0}",
    ];
    for command in shapes {
        assert_eq!(judged(command), Err(CommandShape), "{command:?}");
    }
    for command in ["NPX", "sh", "python3", "npx\0", "s2-mcp-server", "custom-mcp-server"] {
        let refusal = judged(command).unwrap_err();
        assert_eq!(refusal.to_string(), "uses disallowed stdio command; allowed are npx, uvx", "{command:?}");
    }
}

#[test]
fn variables_that_are_code_are_refused_for_every_command() {
    // Contract 3.6, 3.7.
    let allowlist = Allowlist::extended("python");
    for (line, variable, shown) in [
        ("npx -y pkg", "NODE_OPTIONS", "NODE_OPTIONS"),
        ("npx -y pkg", "node_options", "NODE_OPTIONS"),
        ("npx -y pkg", "LD_PRELOAD", "LD_PRELOAD"),
        ("npx -y pkg", "DYLD_INSERT_LIBRARIES", "DYLD_INSERT_LIBRARIES"),
        ("npx -y pkg", "BASH_ENV", "BASH_ENV"),
        ("npx -y pkg", "PYTHONSTARTUP", "PYTHONSTARTUP"),
        ("npx -y pkg", "npm_config_call", "npm_config_call"),
        ("npx -y pkg", "NPM_CONFIG_SCRIPT-SHELL", "npm_config_script_shell"),
        ("uvx tool", "PYTHONPATH", "PYTHONPATH"),
        ("uvx tool", "pythonpath", "PYTHONPATH"),
        ("uvx tool", "PYTHONHOME", "PYTHONHOME"),
        ("python -m x", " Ld_Audit ", "LD_AUDIT"),
    ] {
        let variables = ["API_KEY", variable];
        assert_eq!(verdict_in(line, &variables, &allowlist), Err(Variable(shown)), "{line} {variable}");
    }
    let ordinary = ["API_KEY", "LOG_LEVEL", "HTTPS_PROXY", "NODE_PATH", "npm_config_registry"];
    assert_eq!(verdict_in("npx -y pkg", &ordinary, &allowlist), Ok(()));
}

#[test]
fn reported_launches_are_judged() {
    for line in [
        "npx",
        "npx -y some-server",
        "npx some-server@1.2.3",
        "npx -y @scope/server -- --port 0",
        "npx -y some-server --config x.json",
        "npx -y some-server 'a b; rm -rf x' '$(id)' '`id`' '| cat'",
        "uvx some-server",
        "uvx --from pkg some-server",
        "uvx --python 3.12 some-server",
    ] {
        assert_eq!(verdict(line), Ok(()), "{line}");
    }
    for (line, flag) in [
        ("npx -y -c 'touch CANARY'", "-c"),
        ("npx --yes --call 'touch CANARY'", "--call"),
        ("npx -p x -c 'touch CANARY'", "-c"),
        ("npx --node-arg=--eval=1", "--node-arg"),
        ("npx --eval=1", "--eval"),
        ("npx --CALL 'touch CANARY'", "--call"),
    ] {
        assert_eq!(verdict(line), Err(Flag(flag)), "{line}");
    }
}

#[test]
fn the_first_reason_is_told_and_no_word_of_the_request() {
    // Contract 3.1: command, then arguments, then variables.
    let allowlist = Allowlist::default();
    let refused = |line: &str| verdict_in(line, &["LD_PRELOAD"], &allowlist).unwrap_err().to_string();
    assert_eq!(refused("npx -yc 's3cret'"), "passes '-c', which would run arbitrary code");
    assert!(refused("npx s3cret").starts_with("sets environment variable 'LD_PRELOAD', which runs code at process"));
    assert!(refused("s3cret -c x").starts_with("uses disallowed stdio command"));
    assert!(refused("/s3cret -c x").starts_with("must be a single executable name"));
}

/// The one server of a document.
fn server(fields: &str) -> Arc<ServerConfig> {
    let text = format!(r#"{{"mcpServers": {{"a": {{{fields}}}}}}}"#);
    let source = Source { file: Path::new("/etc/caribou/x.json"), text: text.as_bytes() };
    let document = parse(&source, &|_| None).unwrap();
    document.servers[0].config.clone().unwrap()
}

#[test]
fn a_remote_server_starts_nothing_whatever_its_fields_say() {
    // Contract 3.
    let fields = r#""command": "/bin/bash", "args": ["-c", "x"], "env": {"NODE_OPTIONS": "x"}"#;
    let remote = server(&format!(r#""type": "http", "url": "https://example.com/mcp", {fields}"#));
    assert!(Request::of(&remote).is_none());
    let stdio = server(&format!(r#"{fields}, "thread_files": {{"LD_PRELOAD": "x.so"}}"#));
    let request = Request::of(&stdio).unwrap();
    assert_eq!((request.command, request.args), ("/bin/bash", vec!["-c", "x"]));
    assert_eq!(request.variables, ["NODE_OPTIONS", "LD_PRELOAD"]);
}
