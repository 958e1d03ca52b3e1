//! What holds for every document: nothing panics, no message repeats a value, positions are those of the text. Only
//! built for tests.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::report::Report;
use super::samples::read;
use super::{check, json_text};

/// Keys that mean something somewhere, so that random documents reach the readers.
const KEYS: [&str; 45] = [
    "mcpServers",
    "mcpInterceptors",
    "skills",
    "a",
    "b b",
    "enabled",
    "type",
    "transport",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "Authorization",
    "authorization",
    "Accept",
    "oauth",
    "token_url",
    "grant_type",
    "client_secret",
    "extra_token_params",
    "refresh_skew_seconds",
    "reuse_leeway_seconds",
    "unknown_outcome",
    "token_endpoint_auth_method",
    "user_auth",
    "users",
    "header",
    "on_missing",
    "headers_from_context",
    "routing",
    "mode",
    "priority",
    "keywords",
    "tools",
    "required_scopes",
    "task_toolsets",
    "name",
    "submit_tool",
    "status_tool",
    "cancel_tool",
    "tool_call_timeout",
    "native_tasks",
    "client_capabilities",
];

/// A string that occurs in no message of ours, in the shapes that values have.
fn secret() -> impl Strategy<Value = String> {
    let shape =
        prop::sample::select(vec!["", "$", "${", "http://", "https://u:", "Bearer $", "/", "é", "\n", "\u{0}", " "]);
    let tail = prop::sample::select(vec!["", "}", "\r\nX-Evil: 1", "@h/p?q=1", "工"]);
    (shape, "zq[0-9a-f]{8}qz", tail).prop_map(|(shape, middle, tail)| format!("{shape}{middle}{tail}"))
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["stdio", "http", "sse", "prefer", "deny"]).prop_map(Value::from),
        secret().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(KEYS.to_vec()), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

/// A document that looks like one: random servers below `mcpServers`.
fn document() -> impl Strategy<Value = Value> {
    prop::collection::vec(value(), 1..4).prop_map(|servers| {
        let servers: Map<String, Value> = servers.into_iter().enumerate().map(|(i, v)| (format!("s{i}"), v)).collect();
        serde_json::json!({ "mcpServers": servers })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_problem_or_debug_output_repeats_a_value(document in prop_oneof![document(), value()]) {
        let read = read(document.to_string().as_bytes());
        let told = format!("{read:?}");
        prop_assert!(!told.contains("zq"), "{told}");
        let problems = read.map_or_else(|problems| problems, |document| document.problems);
        prop_assert!(!serde_json::to_string(&problems).unwrap().contains("zq"));
    }

    #[test]
    fn any_bytes_are_answered_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn a_cut_document_is_refused_with_a_place_inside_it(document in document(), cut in any::<prop::sample::Index>()) {
        let text = serde_json::to_string_pretty(&document).unwrap();
        let cut = &text.as_bytes()[..cut.index(text.len())];
        let problems = read(cut).expect_err("a cut object is no object");
        let lines = cut.split(|byte| *byte == b'\n').count();
        prop_assert!((1..=lines).contains(&problems[0].line) && problems[0].column >= 1);
    }

    #[test]
    fn the_tree_says_what_serde_json_says(value in value(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let report = Report::new(Path::new("x"), &text);
        let tree = json_text::tree(&text, &report).expect("valid JSON");
        prop_assert_eq!(tree.to_value(), serde_json::from_str::<Value>(&text).unwrap());
    }

    #[test]
    fn checking_twice_says_the_same(document in document()) {
        let text = document.to_string();
        let source = super::Source { file: Path::new("x"), text: text.as_bytes() };
        prop_assert_eq!(check(&source, &|_| None), check(&source, &|_| None));
    }
}
