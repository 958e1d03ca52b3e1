//! The commented `config.yaml`, made from the schema, so that it says what is accepted and what the defaults are.
//!
//! A setting stands behind `#` without a blank, as it would be written; prose stands behind `# `. The file as it is
//! written sets nothing.

use std::fmt::Write as _;

use serde_json::Value;

use crate::settings;

/// Columns of a line of prose, its indent included.
const WIDTH: usize = 100;

/// What to know before the example servers are switched on: `extensions_config.json` can hold no comments.
const ABOUT_EXAMPLES: &str = include_str!("about_examples.txt");

/// What stands in front of a section, beside its own description.
const NOTES: [(&str, &str); 1] = [(
    "guardrails",
    "OpenViking's `forget` deletes for good and asks nobody. To keep models from it, set `enabled: true`, `use: \
     \"allowlist\"` and `denied_tools: [\"openviking_forget\"]`, or `[\"forget\"]` where that server has \
     `tool_name_prefix: false`.",
)];

/// The text of the file.
pub(super) fn settings_file() -> String {
    let schema = settings::schema();
    let mut text = String::new();
    prose(&mut text, "", "Settings of one Caribou replica: `caribou serve --config config.yaml`.");
    prose(
        &mut text,
        "",
        "A line behind `#` without a blank is a setting with its default; remove the `#` to change it.",
    );
    prose(&mut text, "", "Each can also be a variable: CARIBOU_ and its path in capitals, CARIBOU_SESSIONS_MAX_LIVE.");
    section(&mut text, "", schema.as_value());
    text.push_str("\n# About the servers in extensions_config.json\n");
    for line in ABOUT_EXAMPLES.lines() {
        prose(&mut text, "", line);
    }
    text
}

fn section(text: &mut String, indent: &str, schema: &Value) {
    for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
        if indent.is_empty() {
            text.push('\n');
        }
        prose(text, indent, schema["description"].as_str().unwrap_or_default());
        for (_, note) in NOTES.iter().filter(|(section, _)| section == key) {
            prose(text, indent, note);
        }
        // Writing into a text cannot fail.
        if schema["properties"].is_object() {
            let _ = writeln!(text, "{indent}{key}:");
            section(text, &format!("{indent}  "), schema);
        } else {
            let _ = writeln!(text, "{indent}#{key}: {}", schema["default"]);
        }
    }
}

/// Words behind `# `, wrapped.
fn prose(text: &mut String, indent: &str, words: &str) {
    let mut line = String::new();
    for word in words.split_whitespace() {
        if !line.is_empty() && indent.len() + line.len() + word.len() + 3 > WIDTH {
            let _ = writeln!(text, "{indent}# {line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(text, "{}", format!("{indent}# {line}").trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{File, Inputs, Settings, load};

    fn loaded(text: String) -> Settings {
        let file = Some(File { path: "config.yaml".into(), text });
        let loaded = load(&Inputs { file, env: &|_| None, flags: vec![] });
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        loaded.settings
    }

    #[test]
    fn the_file_sets_nothing_until_a_mark_is_removed() {
        assert_eq!(loaded(settings_file()), Settings::default());
        let changed = settings_file().replace("#max_live: 256", "max_live: 7");
        assert_eq!(loaded(changed).sessions.max_live, 7);
    }

    #[test]
    fn every_line_with_a_mark_is_a_setting_with_its_default() {
        let bare = |line: &str| match line.trim_start().strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') && !setting.is_empty() => line.replacen('#', "", 1),
            _ => line.to_owned(),
        };
        let text: Vec<String> = settings_file().lines().map(bare).collect();
        assert_eq!(loaded(text.join("\n")), Settings::default());
        assert!(text.iter().all(|line| line.chars().count() <= WIDTH), "{text:?}");
    }
}
