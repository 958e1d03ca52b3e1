//! That the chart's README tells of every value, with its default, and of no other; and the notes of a release.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::chart::{EXAMPLES, helm, read, text_of, values};

/// Values that are documents of others: told of as a whole.
const WHOLE: [&str; 2] = ["config", "extensions.content"];

/// Each value by its path.
fn leaves(path: &str, value: &Value, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(entries) if !entries.is_empty() && !WHOLE.contains(&path) => {
            for (key, value) in entries {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                leaves(&path, value, found);
            }
        }
        value => drop(found.insert(path.to_owned(), value.clone())),
    }
}

/// Rows of the README's tables that tell of a value, and not of a metric: its path, its default, and what it means.
fn rows(readme: &str) -> Vec<(String, Value, String)> {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let quoted = |cell: &str| Some(cell.strip_prefix('`')?.strip_suffix('`')?.to_owned());
    let tables = readme.lines().filter(|line| line.starts_with("| `") && !line.starts_with("| `caribou_")).map(cells);
    let told: Vec<_> = tables
        .filter_map(|cells| {
            let [_, path, default, meaning, _] = &cells[..] else { return None };
            Some((quoted(path)?, quoted(default)?, meaning.clone()))
        })
        .collect();
    // All at once: a process for each would take minutes.
    let defaults: String = told.iter().map(|(_, default, _)| format!("---\nx: {default}\n")).collect();
    let defaults = read(&defaults, &[]).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(defaults.len(), told.len());
    told.into_iter().zip(defaults).map(|((path, _, meaning), default)| (path, default["x"].clone(), meaning)).collect()
}

#[test]
fn the_readme_tells_of_every_value() {
    let mut expected = BTreeMap::new();
    leaves("", &values(), &mut expected);
    let rows = rows(&text_of("helm/caribou/README.md"));
    let told: BTreeMap<_, _> = rows.iter().map(|(path, default, _)| (path.clone(), default.clone())).collect();
    assert_eq!(told.len(), rows.len(), "a value is told of twice");
    for (path, default) in &expected {
        assert_eq!(told.get(path), Some(default), "the default of {path} in helm/caribou/README.md");
    }
    for (path, _, meaning) in &rows {
        assert!(expected.contains_key(path), "{path}: there is no such value");
        assert!(meaning.len() > 5, "{path}: says nothing");
    }
}

#[test]
fn the_notes_of_a_release_lead_to_a_first_call() {
    for name in EXAMPLES {
        let values = format!("ci/{name}-values.yaml");
        let arguments = ["install", "demo", ".", "--namespace", "agents", "--dry-run=client", "--values", &values];
        let said = helm(&arguments).unwrap_or_else(|refused| panic!("{name}: {refused}"));
        let (_, notes) = said.split_once("NOTES:").unwrap_or_else(|| panic!("{name}: no notes"));
        assert!(notes.contains("/api/mcp/tools/call") && notes.contains("helm test demo"), "{name}: {notes}");
        assert_eq!(notes.contains("caribou keys create"), name != "hardened", "{name}: {notes}");
        assert_eq!(notes.contains("THIS IS A TRIAL"), name == "trial", "{name}: {notes}");
        let kind = if name == "embedded" { "statefulset" } else { "deployment" };
        assert!(notes.contains(&format!("rollout status {kind}/demo-caribou")), "{name}: {notes}");
    }
}

#[test]
fn rows_are_read_with_their_defaults() {
    let text =
        "| value | default | meaning |\n| --- | --- | --- |\n| `a.b` | `[x]` | A list. |\n| `c` | `\"\"` | A text. |\n";
    let found = rows(text);
    assert_eq!(found[0], ("a.b".to_owned(), json!(["x"]), "A list.".to_owned()));
    assert_eq!((found.len(), &found[1].1), (2, &json!("")));
}
