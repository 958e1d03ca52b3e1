//! What holds for every document that is shown, changed and written back: nothing a client did not change changes.
//! Only built for tests.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::samples::read;
use super::{Document, Source, Touch, edit, json_text, touch, view};

fn source(text: &[u8]) -> Source<'_> {
    Source { file: Path::new("/etc/caribou/x.json"), text }
}

fn text() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["", "x", "$TOKEN", "$UNSET", "Bearer abc", "é\n", "http://h/p"]).prop_map(Value::from)
}

fn texts(keys: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::collection::vec((prop::sample::select(keys), text()), 0..3).prop_map(object)
}

fn object<K: Into<String>>(members: Vec<(K, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

/// Any value, below keys of which some look secret.
fn extra() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), any::<i32>().prop_map(Value::from), text()];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let keys = prop::sample::select(vec!["apiKey", "note", "token", "nested"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..3).prop_map(object),
        ]
    })
}

/// Some of these members, each of its own kind.
fn some(members: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let member = |(key, value): (&'static str, BoxedStrategy<Value>)| {
        prop::option::of(value).prop_map(move |value| value.map(|value| (key, value)))
    };
    let members: Vec<_> = members.into_iter().map(member).collect();
    members.prop_shuffle().prop_map(|members| object(members.into_iter().flatten().collect())).boxed()
}

fn oauth() -> BoxedStrategy<Value> {
    some(vec![
        ("token_url", Just(json!("https://t/")).boxed()),
        ("grant_type", Just(json!("refresh_token")).boxed()),
        ("client_id", text().boxed()),
        ("client_secret", text().boxed()),
        ("refresh_token", text().boxed()),
        ("refresh_skew_seconds", Just(json!(5)).boxed()),
        ("extra_token_params", texts(&["k", "secret"]).boxed()),
        ("custom", extra().boxed()),
    ])
}

fn server() -> BoxedStrategy<Value> {
    let word = |words: &'static [&'static str]| prop::sample::select(words).prop_map(Value::from).boxed();
    let caller = some(vec![
        ("enabled", any::<bool>().prop_map(Value::from).boxed()),
        ("header", Just(json!("X-Key")).boxed()),
        ("users", texts(&["ann", "bob"]).boxed()),
        ("token", extra().boxed()),
    ]);
    some(vec![
        ("enabled", any::<bool>().prop_map(Value::from).boxed()),
        ("type", word(&["stdio", "http", "sse", "", "odd"])),
        ("transport", word(&["stdio", "http", "$UNSET", ""])),
        ("command", word(&["npx", "/bin/x", "$TOKEN"])),
        ("args", prop::collection::vec(text(), 0..3).prop_map(Value::from).boxed()),
        ("env", prop_oneof![4 => texts(&["A", "B"]), 1 => extra()].boxed()),
        ("url", word(&["http://h", "https://u:p@h/?k=1"])),
        ("headers", texts(&["Authorization", "X-A"]).boxed()),
        ("oauth", prop_oneof![4 => oauth(), 1 => Just(Value::Null)].boxed()),
        ("user_auth", prop_oneof![4 => caller, 1 => Just(json!("wrong"))].boxed()),
        ("headers_from_context", Just(json!({"headers": {"X-B": "key"}})).boxed()),
        ("routing", Just(json!({"mode": "prefer", "keywords": ["k"]})).boxed()),
        ("tools", Just(json!({"t": {"routing": {"priority": 3}, "secret": "s"}})).boxed()),
        ("tool_call_timeout", Just(json!(2.5)).boxed()),
        ("session_init_timeout", Just(Value::Null).boxed()),
        ("description", text().boxed()),
        ("password", extra().boxed()),
        ("icon", extra().boxed()),
        ("thread_files", Just(json!({"TOKEN_FILE": "t"})).boxed()),
    ])
}

fn document() -> impl Strategy<Value = Value> {
    let servers = prop::collection::vec(server(), 0..4).prop_map(|servers| {
        object(servers.into_iter().enumerate().map(|(i, server)| (format!("s{i}"), server)).collect())
    });
    (prop::sample::select(vec!["mcpServers", "mcp_servers"]), servers, extra()).prop_map(|(key, servers, other)| {
        let interceptors = json!(["builtin:a", {"use": "http://u:p@h/", "secrets": ["k"], "timeout_seconds": 1}]);
        let skills = json!({"x": 1.0});
        object(vec![("skills", skills), ("mcpInterceptors", interceptors), (key, servers), ("other", other)])
    })
}

/// Two documents mean the same to whoever serves them.
fn assert_same_meaning(before: &Document, after: &Document) {
    assert_eq!(before.servers.len(), after.servers.len());
    for (before, after) in before.servers.iter().zip(&after.servers) {
        assert_eq!(before.name, after.name);
        match (&before.config, &after.config) {
            (Ok(before), Ok(after)) => assert_eq!(touch(before, after), Touch::Untouched, "{}", before.name),
            (before, after) => assert_eq!(before.is_err(), after.is_err(), "{before:?} {after:?}"),
        }
    }
    assert_eq!((&before.skills, &before.extra), (&after.skills, &after.extra));
    assert_eq!((before.interceptors.len(), &before.interceptors), (2, &after.interceptors));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_get_shows_put_back_means_the_same(document in document(), pretty in any::<bool>()) {
        // Contract 1.12, 1.13, 2.2.
        let text = if pretty { serde_json::to_vec_pretty(&document) } else { serde_json::to_vec(&document) }.unwrap();
        let shown = view(&source(&text)).unwrap();
        let written = edit::replace_all(&source(&text), &shown).map_err(|refusal| refusal.to_string());
        let written = written.map_err(TestCaseError::fail)?.text;
        assert_same_meaning(&read(&text).unwrap(), &read(&written).unwrap());
        prop_assert_eq!(view(&source(&written)).unwrap(), shown);
    }

    #[test]
    fn a_second_write_of_the_same_changes_no_byte(document in document()) {
        let text = document.to_string().into_bytes();
        let shown = view(&source(&text)).unwrap();
        let once = edit::replace_all(&source(&text), &shown).ok().unwrap().text;
        let twice = edit::replace_all(&source(&once), &view(&source(&once)).unwrap()).ok().unwrap().text;
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn no_secret_is_shown(document in document(), secret in "zq[0-9a-f]{8}qz") {
        // Contract 1.12.
        let mut document = document;
        let key = if document.get("mcpServers").is_some() { "mcpServers" } else { "mcp_servers" };
        document[key]["planted"] = json!({
            "env": {"A": secret}, "headers": {"A": secret}, "oauth": {"client_secret": secret, "refresh_token": secret,
            "extra_token_params": {"a": secret}, "x": [{"api_key": secret}]}, "user_auth": {"users": {"a": secret}},
            "tools": {"t": {"password": {"a": secret}}}, "deep": [[{"accessToken": secret}]],
        });
        let shown = Value::Object(view(&source(document.to_string().as_bytes())).unwrap()).to_string();
        prop_assert!(!shown.contains(&secret), "{}", shown);
    }

    #[test]
    fn switching_changes_one_value(document in document(), enabled in any::<bool>(), layout in 0..3usize) {
        // Contract 2.2, PATCH.
        let text = match layout {
            0 => document.to_string(),
            1 => serde_json::to_string_pretty(&document).unwrap(),
            _ => format!("\u{feff}{}\r\n", serde_json::to_string_pretty(&document).unwrap().replace('\n', "\r\n")),
        };
        let key = if document.get("mcpServers").is_some() { "mcpServers" } else { "mcp_servers" };
        let Some(name) = document[key].as_object().and_then(|servers| servers.keys().next_back().cloned()) else {
            return Ok(());
        };
        let written = edit::set_enabled(&source(text.as_bytes()), &name, enabled).ok().unwrap().text;
        let mut expected = document.clone();
        expected[key][&name]["enabled"] = enabled.into();
        let decoded = json_text::decode(&source(&written)).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(decoded).unwrap(), expected);
        prop_assert!(is_one_insertion(text.as_bytes(), &written));
    }

    #[test]
    fn any_bytes_are_shown_and_changed_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let source = source(&bytes);
        let _ = view(&source);
        let _ = edit::replace_all(&source, &Map::new());
        let _ = edit::set_enabled(&source, "a", true);
    }
}

/// Whether what differs is one stretch that holds at most a value, or a key with its value, before and after.
fn is_one_insertion(before: &[u8], after: &[u8]) -> bool {
    let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let rest = |text: &[u8]| text[start..].to_vec();
    let (before, after) = (rest(before), rest(after));
    let end = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    before.len() - end <= "false".len() && after.len() - end <= 40
}
