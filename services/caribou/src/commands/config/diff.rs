//! `caribou config diff`: what another file says differently from what is stored.
//!
//! Both are compared as they are shown, defaults filled in, so layout is no difference and neither is the value of a
//! secret: only that there is one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use caribou_core::config::{MAX_DOCUMENT_BYTES, Source, view};
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};

use super::stored::Stored;
use crate::commands::arguments::Target;
use crate::commands::gateway::Gateway;
use crate::commands::output;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// A file of servers, such as one that is to be stored
    file: PathBuf,
    #[command(flatten)]
    target: Target,
}

/// One difference.
#[derive(Debug, PartialEq, Serialize)]
struct Difference<'d> {
    server: &'d str,
    /// Which field; none when the server as a whole is added or removed.
    field: Option<&'d str>,
    /// What is stored.
    stored: Option<&'d Value>,
    /// What the file says.
    file: Option<&'d Value>,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let proposed = read(&arguments.file)?;
    let stored = Gateway::once(&arguments.target, Stored::read).await?;
    let found = differences(&stored.servers, &proposed);
    if arguments.target.json {
        output::line(serde_json::to_string(&found)?)?;
    } else {
        output::table(["Server", "Field", "Stored", "File"], &found.iter().map(row).collect::<Vec<_>>())?;
    }
    // As other programs that compare: 0 the same, 1 different.
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(file: &Path) -> anyhow::Result<Map<String, Value>> {
    let shown = file.display();
    let size = std::fs::metadata(file).with_context(|| format!("cannot read {shown}"))?.len();
    anyhow::ensure!(size <= MAX_DOCUMENT_BYTES as u64, "{shown} is larger than {MAX_DOCUMENT_BYTES} bytes");
    let text = std::fs::read(file).with_context(|| format!("cannot read {shown}"))?;
    view(&Source { file, text: &text }).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{shown} cannot be used:\n  {}", lines.join("\n  "))
    })
}

fn differences<'d>(stored: &'d Map<String, Value>, file: &'d Map<String, Value>) -> Vec<Difference<'d>> {
    let mut found = Vec::new();
    for name in union(stored, file) {
        let fields = |servers: &'d Map<String, Value>| servers.get(name).and_then(Value::as_object);
        let (Some(before), Some(after)) = (fields(stored), fields(file)) else {
            found.push(Difference { server: name, field: None, stored: stored.get(name), file: file.get(name) });
            continue;
        };
        for field in union(before, after).filter(|field| before.get(*field) != after.get(*field)) {
            let (stored, file) = (before.get(field), after.get(field));
            found.push(Difference { server: name, field: Some(field), stored, file });
        }
    }
    found
}

/// The keys of both, those of the first in front.
fn union<'d>(first: &'d Map<String, Value>, second: &'d Map<String, Value>) -> impl Iterator<Item = &'d str> {
    first.keys().chain(second.keys().filter(|key| !first.contains_key(*key))).map(String::as_str)
}

fn row(difference: &Difference<'_>) -> [String; 4] {
    let Difference { server, field, stored, file } = difference;
    let there = |value: &Option<&Value>| match (field, value) {
        (_, None) => "-".to_owned(),
        (None, Some(_)) => "there".to_owned(),
        (Some(_), Some(value)) => value.to_string(),
    };
    [(*server).to_owned(), field.unwrap_or("(all)").to_owned(), there(stored), there(file)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_and_fields_that_differ_are_named_and_nothing_else() {
        let map = |value: Value| value.as_object().unwrap().clone();
        let stored = map(json!({"a": {"command": "x", "env": {"T": "***"}}, "gone": {}}));
        let file = map(json!({"new": {}, "a": {"env": {"T": "***"}, "command": "y", "icon": 1}}));
        let rows: Vec<[String; 4]> = differences(&stored, &file).iter().map(row).collect();
        let expected = [
            ["a", "command", r#""x""#, r#""y""#],
            ["a", "icon", "-", "1"],
            ["gone", "(all)", "there", "-"],
            ["new", "(all)", "-", "there"],
        ];
        assert_eq!(rows, expected);
        assert!(differences(&stored, &stored).is_empty());
    }
}
