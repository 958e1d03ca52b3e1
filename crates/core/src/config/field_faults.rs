//! Faults seen in the field, as tests: torn files, comments, references, credentials that end in a newline, lost
//! working directories. Only built for tests.

use serde_json::json;

use super::samples::{good, read};
use super::{Severity, Transport};

const REMOTE: &str = r#"{"url": "http://127.0.0.1:9001/mcp"}"#;

/// The first problem of a document that must be refused.
fn refusal(text: &[u8]) -> String {
    let problems = read(text).expect_err("must be refused");
    assert!(problems.iter().all(|problem| problem.severity == Severity::Error || problem.line > 0));
    problems[0].to_string()
}

#[test]
fn a_torn_or_broken_file_is_refused_as_a_whole_with_its_place() {
    // Contract 1.1, loading errors.
    for (text, expected) in [
        ("", ":1:1: error: $: the file is empty"),
        (" \n\t", ":1:1: error: $: the file is empty"),
        (
            r#"{"mcpServers":{"a":{"type":"stdio","comm"#,
            ":1:40: error: $: the file is not valid JSON: EOF while parsing a string",
        ),
        (
            r#"{"mcpServers":{"a":{"type":"stdio" "command":"x"}}}"#,
            ":1:36: error: $: the file is not valid JSON: expected `,` or `}`",
        ),
        (r#"{"mcpServers":{}}}"#, ":1:18: error: $: the file is not valid JSON: trailing characters"),
        ("[]", ":1:1: error: $: the document must be an object, not a list"),
        ("null", ":1:1: error: $: the document must be an object, not null"),
        (r#"{"mcpServers":[]}"#, ":1:15: error: $.mcpServers: must be an object, not a list"),
        (r#"{"mcpServers":null}"#, ":1:15: error: $.mcpServers: must be an object, not null"),
    ] {
        let refusal = refusal(text.as_bytes());
        assert!(refusal.starts_with("/etc/caribou/x.json:") && refusal.contains(expected), "{text}: {refusal}");
    }
}

#[test]
fn no_servers_at_all_is_a_legal_document() {
    // Contract 1.1.
    for text in ["{}", r#"{"mcpServers":{}}"#] {
        assert!(
            read(text.as_bytes()).is_ok_and(|document| document.servers.is_empty() && document.problems.is_empty())
        );
    }
}

#[test]
fn one_bad_entry_costs_itself_only() {
    // Contract 1.10; 1.1 as architecture.md §10 amends it.
    let text =
        format!(r#"{{"mcpServers":{{"a":{{"command":"x"}},"bad":{{"type":"stdio"}},"worse":"text","b":{REMOTE}}}}}"#);
    let document = read(text.as_bytes()).unwrap();
    let served: Vec<bool> = document.servers.iter().map(|entry| entry.config.is_ok()).collect();
    assert_eq!(served, [true, false, false, true]);
    let reasons: Vec<_> = document.servers.iter().filter_map(|entry| entry.config.as_ref().err()).collect();
    assert_eq!(reasons, ["type stdio requires 'command' field", "must be an object, not a string"]);
}

#[test]
fn wrong_kinds_name_the_fields() {
    let text = format!(r#"{{"mcpServers":{{"a":{{"type":"stdio","command":["x"],"args":"a.py"}},"b":{REMOTE}}}}}"#);
    let document = read(text.as_bytes()).unwrap();
    assert!(
        document.servers[0].config.as_ref().is_err_and(|reason| reason.contains("command") && reason.contains("args"))
    );
    assert!(document.servers[1].config.is_ok());
}

#[test]
fn unknown_keys_are_told_and_nothing_is_lost() {
    let text = r#"{"mcpServers":{"a":{"command":"x","comand":"typo","timeout_sec":3}},"extra":1}"#;
    let document = read(text.as_bytes()).unwrap();
    assert!(document.servers[0].config.is_ok());
    let paths: Vec<_> = document.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["$.mcpServers.a.comand", "$.mcpServers.a.timeout_sec", "$.extra"]);
    assert_eq!(json!(document.extra), json!({"extra": 1}));
}

#[test]
fn a_key_that_stands_twice_names_both_places() {
    let text = format!("{{\"mcpServers\": {{\"a\": {REMOTE},\n \"\\u0061\": {REMOTE}}}}}");
    let refusal = refusal(text.as_bytes());
    assert!(
        refusal
            .contains(":2:2: error: $.mcpServers.a: this key stands twice in one object, first at line 1, column 17"),
        "{refusal}"
    );
}

#[test]
fn json_is_strict_and_says_why() {
    for (text, expected) in [
        (
            "{\n  // the search server\n  \"mcpServers\": {}\n}",
            ":2:3: error: $: the file is not valid JSON: key must be a string; comments are not allowed",
        ),
        (r#"{"mcpServers": {/* off */ "a": 1}}"#, ":1:17: error"),
        (r#"{"mcpServers": {/* off */ "a": 1}}"#, "comments are not allowed"),
        ("{\"mcpServers\": {} /* no end\n}", "comments are not allowed"),
        ("{} // end", "comments are not allowed"),
        ("# x\n{}", "comments are not allowed"),
        (r#"{"mcpServers": {"a": {"args": ["1", "2",],},},}"#, "trailing commas are not allowed"),
        (r#"{"mcpServers": {"a": {},}}"#, "trailing commas are not allowed"),
        ("{'mcpServers': {}}", "double quotes"),
        (r#"{"mcpServers": {"a": {"tool_call_timeout": NaN}}}"#, "finite decimal numbers"),
        (r#"{"mcpServers": {"a": {"tool_call_timeout": 1e999}}}"#, "number out of range"),
        (r#"{"a": "\ud800"}"#, "the file is not valid JSON"),
    ] {
        let refusal = refusal(text.as_bytes());
        assert!(refusal.contains(expected), "{text}: {refusal}");
    }
}

#[test]
fn a_byte_order_mark_is_accepted_and_other_encodings_are_refused() {
    // Contract 1.11, encoding.
    let text = format!("\u{feff}{{\"mcpServers\": {{\"a\": {REMOTE}}}}}");
    assert!(read(text.as_bytes()).unwrap().servers[0].config.is_ok());
    let utf16: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(refusal(&utf16).contains("not UTF-8"));
    assert!(refusal(b"{\"gr\xfcn\": 1}").contains(":1:5: error: $: the file is not valid JSON: it is not UTF-8"));
}

#[test]
fn depth_and_size_are_bounded() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert!(refusal(deep.as_bytes()).contains("at most 128 levels"));
    let large = vec![b' '; super::MAX_DOCUMENT_BYTES + 1];
    assert!(refusal(&large).contains("larger than 16777216 bytes"));
    let many: Vec<String> = (0..20_000).map(|i| format!("\"s{i}\": {REMOTE}")).collect();
    let document = read(format!("{{\"mcpServers\": {{{}}}}}", many.join(",")).as_bytes()).unwrap();
    assert_eq!(document.servers.len(), 20_000);
    let wrong = format!(r#"{{"mcpServers": {{"a": {{"command": "x", "args": [{}]}}}}}}"#, vec!["1"; 100_000].join(","));
    let document = read(wrong.as_bytes()).unwrap();
    assert!(document.servers[0].config.as_ref().is_err_and(|reason| reason.ends_with("; 99995 more")));
    assert!(document.problems.len() < 1_000);
}

#[test]
fn comment_marks_inside_strings_are_text() {
    let server = good(r#""type": "http", "url": "http://127.0.0.1:9001//x/*y*/", "headers": {"X-Note": "a // b, ]"}"#);
    let Transport::Http(remote) = &server.transport else { panic!("http") };
    assert_eq!((remote.url.as_str(), remote.headers[0].1.expose()), ("http://127.0.0.1:9001//x/*y*/", "a // b, ]"));
}

#[test]
fn references_follow_one_rule_in_every_field() {
    let server = good(
        r#""command": "python3", "args": ["server.py", "$TOKEN", "--t=$TOKEN", "cost 5$", "$DOLLAR"],
           "env": {"T_WHOLE": "$TOKEN", "T_INLINE": "Bearer $TOKEN", "$TOKEN": "a key is no reference", "T_EMPTY": "$EMPTY"},
           "cwd": "$WORK""#,
    );
    let Transport::Stdio(stdio) = &server.transport else { panic!("stdio") };
    assert_eq!(stdio.args, ["server.py", "tok-123456", "--t=$TOKEN", "cost 5$", "pa$$TOKEN"]);
    let env: Vec<_> = stdio.env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(
        env,
        [
            ("T_WHOLE", "tok-123456"),
            ("T_INLINE", "Bearer $TOKEN"),
            ("$TOKEN", "a key is no reference"),
            ("T_EMPTY", "")
        ]
    );
    assert_eq!(stdio.cwd.as_deref().and_then(|cwd| cwd.to_str()), Some("/srv/work"));
}

#[test]
fn neither_an_empty_credential_nor_the_text_of_a_reference_is_sent() {
    let unset = r#""type": "http", "url": "http://h", "headers": {"Authorization": "$UNSET"}"#;
    let text = format!(r#"{{"mcpServers": {{"on": {{{unset}}}, "off": {{"enabled": false, {unset}}}}}}}"#);
    let document = read(text.as_bytes()).unwrap();
    let reason = document.servers[0].config.as_ref().expect_err("dropped");
    assert_eq!(reason, "headers.Authorization: the variable `UNSET` it refers to is empty or not set");
    assert!(document.servers[1].config.as_ref().is_ok_and(|server| !server.enabled));
    for value in ["Bearer ${UNSET}", "Bearer $TOKEN"] {
        let text = format!(
            r#"{{"mcpServers": {{"a": {{"type": "http", "url": "http://h", "headers": {{"A": "{value}"}}}}}}}}"#
        );
        assert!(read(text.as_bytes()).unwrap().servers[0].config.is_err(), "{value}");
    }
}

#[test]
fn configured_secrets_are_known_to_the_masker() {
    let masked = |body: &str, text: &str| good(body).masker.mask(text);
    let http = r#""type": "http", "url": "https://ann:passw0rd@h/p?key=k-123456""#;
    assert_eq!(masked(http, "passw0rd k-123456 https://h/p"), "*** *** https://h/p");
    let auth = format!(
        r#"{http}, "headers": {{"Authorization": "Bearer hdr-secret"}}, "user_auth": {{"users": {{"u": "Bearer usr-secret"}}}},
           "oauth": {{"token_url": "https://t", "client_id": "c", "client_secret": "cli-secret", "refresh_token": "ref-secret",
           "extra_token_params": {{"k": "ext-secret"}}}}"#
    );
    assert_eq!(masked(&auth, "hdr-secret usr-secret cli-secret ref-secret ext-secret"), "*** *** *** *** ***");
    let child = r#""command": "x", "args": ["$TOKEN", "plain-argument"], "env": {"API_KEY": "k-1234", "MODE": "simple", "LONG": "long-value"}"#;
    assert_eq!(
        masked(child, "tok-123456 plain-argument k-1234 simple long-value"),
        "*** plain-argument *** simple ***"
    );
}
