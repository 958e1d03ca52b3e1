//! Lays the sources of settings over one another: defaults, file, environment, flags.
//!
//! Each value is tried alone on the defaults, so that every wrong one is found and named, with its own place, in one
//! go. Keeps invariant O3 by never quoting a value.

use std::path::{Path, PathBuf};

use caribou_core::config::Severity;
use garde::Validate;
use serde_json::Value;

use super::expected::expected;
use super::yaml::{self, Place};
use super::{Problem, Settings};
use super::{personal, redis};

/// Settings that are paths: relative ones in a file count from that file's folder.
const PATHS: [&str; 11] = [
    "data_dir",
    "extensions_config_path",
    "threads.root",
    "auth.jwt.jwks_file",
    "cluster.tls.ca_file",
    "cluster.tls.cert_file",
    "cluster.tls.key_file",
    "network.ca_file",
    "tls.cert_file",
    "tls.client_ca_file",
    "tls.key_file",
];

/// Where settings come from. The process's own environment is handed in, so that tests need no global state.
pub struct Inputs<'a> {
    /// `config.yaml`, if one was named.
    pub file: Option<File>,
    /// Looks up one environment variable.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// What the command line said.
    pub flags: Vec<Flag>,
}

/// A `config.yaml` that was read.
#[derive(Clone, Debug)]
pub struct File {
    /// Its path, as it is named in problems.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// One setting given on the command line.
#[derive(Clone, Debug)]
pub struct Flag {
    /// As it is written, such as `--data-dir`.
    pub name: &'static str,
    /// The path of the setting.
    pub path: &'static str,
    /// What was given.
    pub text: String,
}

/// What all sources together say.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings, a wrong one left as the sources below it say.
    pub settings: Settings,
    /// All problems of all sources, in their order. A replica starts only when there is none.
    pub problems: Vec<Problem>,
}

/// Reads all sources.
pub fn load(inputs: &Inputs<'_>) -> Loaded {
    let defaults = serde_json::to_value(Settings::default()).unwrap_or_default();
    let mut layers = Layers { settings: defaults.clone(), defaults, problems: Vec::new() };
    if let Some(file) = &inputs.file {
        layers.lay_file(file);
    }
    layers.lay_environment(inputs.env);
    for flag in &inputs.flags {
        layers.lay_text(flag.path, &flag.text, flag.name);
    }
    // Every value was tried before it was laid, so together they are settings too.
    let settings: Settings = serde_json::from_value(layers.settings).unwrap_or_default();
    let whole = inputs.file.as_ref().map_or_else(|| "settings".to_owned(), |file| file.path.display().to_string());
    let mut problems = layers.problems;
    let missing = [settings.auth.missing(), settings.tls.missing(), settings.cluster.missing()];
    problems.extend(missing.into_iter().flatten().map(|missing| {
        problem(&whole, None, &json_path(missing.path), missing.what.to_owned(), missing.mend.to_owned())
    }));
    Loaded { settings, problems }
}

struct Layers {
    defaults: Value,
    settings: Value,
    problems: Vec<Problem>,
}

impl Layers {
    fn lay_file(&mut self, file: &File) {
        let name = file.path.display().to_string();
        let leaves = match yaml::leaves(&file.text) {
            Ok(leaves) => leaves,
            Err(wrong) => {
                let mend = "write YAML: `name: value`, nested by two spaces, no tabs".to_owned();
                return self.problems.push(problem(&name, wrong.place, "$", wrong.what, mend));
            }
        };
        let known = known_paths(&self.defaults);
        for leaf in leaves {
            let path = leaf.path.as_str();
            // An empty section says nothing, as an empty document does.
            let empty = leaf.value.is_null() || leaf.value.as_object().is_some_and(|entries| entries.is_empty());
            if empty && (path.is_empty() || is_section(&known, path)) {
                continue;
            }
            if is_section(&known, path) || path.is_empty() {
                self.refuse(&name, Some(leaf.place), path);
            } else if !known.iter().any(|known| known == path) {
                let mend = match nearest(path, &known) {
                    Some(known) => format!("did you mean `{known}`?"),
                    None => "remove it; `caribou config schema` prints all settings".to_owned(),
                };
                let what = "there is no such setting".to_owned();
                self.problems.push(problem(&name, Some(leaf.place), &json_path(path), what, mend));
            } else {
                let value = anchored(path, leaf.value, file.path.parent());
                if !self.lay(path, value) {
                    self.refuse(&name, Some(leaf.place), path);
                }
            }
        }
    }

    fn lay_environment(&mut self, env: &dyn Fn(&str) -> Option<String>) {
        for path in known_paths(&self.defaults) {
            if path == personal::MULTI_INSTANCE {
                personal::multi_instance(env).map(|said| self.lay(&path, said.into()));
                continue;
            }
            let variable = variable_of(&path);
            let names = [Some(variable.as_str()), redis::alias(&path)];
            let said = names.into_iter().flatten().find_map(|name| {
                let text = env(name).filter(|text| !text.is_empty())?;
                Some((name, text))
            });
            if let Some((name, text)) = said {
                self.lay_text(&path, &text, name);
            }
        }
    }

    /// Lays a value that came as text: as text, as the JSON it may be, or as a list separated by commas.
    fn lay_text(&mut self, path: &str, text: &str, source: &str) {
        let list = || text.split(',').map(|item| Value::from(item.trim())).collect();
        let laid = self.lay(path, text.into())
            || serde_json::from_str(text).is_ok_and(|value| self.lay(path, value))
            || self.lay(path, list());
        if !laid {
            self.refuse(source, None, path);
        }
    }

    /// Lays one value; false when it cannot be the value of this setting.
    fn lay(&mut self, path: &str, value: Value) -> bool {
        let mut alone = self.defaults.clone();
        set(&mut alone, path, value.clone());
        let valid = serde_json::from_value::<Settings>(alone).is_ok_and(|settings| settings.validate().is_ok());
        if valid {
            set(&mut self.settings, path, value);
        }
        valid
    }

    fn refuse(&mut self, source: &str, place: Option<Place>, path: &str) {
        let what = "this is not a value of this setting".to_owned();
        let path_shown = json_path(path);
        let mend = if path.is_empty() {
            "write a mapping of settings".to_owned()
        } else {
            format!("write {}", expected(path))
        };
        self.problems.push(problem(source, place, &path_shown, what, mend));
    }
}

/// The dotted paths of all settings, in the order they are declared.
fn known_paths(defaults: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    for (key, value) in defaults.as_object().into_iter().flatten() {
        match value {
            Value::Object(_) => paths.extend(known_paths(value).into_iter().map(|inner| format!("{key}.{inner}"))),
            _ => paths.push(key.clone()),
        }
    }
    paths
}

fn is_section(known: &[String], path: &str) -> bool {
    known.iter().any(|known| known.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

fn variable_of(path: &str) -> String {
    format!("CARIBOU_{}", path.replace('.', "_").to_uppercase())
}

fn set(settings: &mut Value, path: &str, value: Value) {
    let slot = path.split('.').fold(settings, |here, key| &mut here[key]);
    *slot = value;
}

/// A relative path from a file, counted from that file's folder.
fn anchored(path: &str, value: Value, folder: Option<&Path>) -> Value {
    match (&value, folder) {
        (Value::String(text), Some(folder)) if PATHS.contains(&path) => folder.join(text).to_string_lossy().into(),
        _ => value,
    }
}

/// The setting with the same last word, whatever section it was looked for in.
fn nearest<'a>(path: &str, known: &'a [String]) -> Option<&'a String> {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().replace(['-', '_'], "").to_lowercase();
    let sought = last(path);
    known.iter().find(|known| last(known) == sought)
}

fn json_path(path: &str) -> String {
    if path.is_empty() { "$".to_owned() } else { format!("$.{path}") }
}

fn problem(file: &str, place: Option<Place>, path: &str, what: String, mend: String) -> Problem {
    Problem {
        severity: Severity::Error,
        file: file.to_owned(),
        line: place.map(|place| place.line),
        column: place.map(|place| place.column),
        path: path.to_owned(),
        what,
        mend,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn load_file(text: &str) -> Settings {
        accepted(&Inputs { file: Some(file(text)), env: &|_| None, flags: Vec::new() })
    }

    fn accepted(inputs: &Inputs<'_>) -> Settings {
        let Loaded { settings, problems } = load(inputs);
        assert_eq!(problems, []);
        settings
    }

    fn file(text: &str) -> File {
        File { path: PathBuf::from("/etc/caribou/config.yaml"), text: text.to_owned() }
    }

    #[test]
    fn nothing_said_means_the_defaults() {
        assert_eq!(load_file(""), Settings::default());
        assert_eq!(load_file("sessions:\nlog: {}\n"), Settings::default());
    }

    #[test]
    fn flags_beat_the_environment_which_beats_the_file() {
        let env = |name: &str| match name {
            "CARIBOU_SESSIONS_MAX_LIVE" => Some("5".to_owned()),
            "CARIBOU_LISTEN" => Some("127.0.0.1:2".to_owned()),
            "CARIBOU_LOG_LEVEL" => Some(String::new()),
            _ => None,
        };
        let flags = vec![Flag { name: "--listen", path: "listen", text: "127.0.0.1:3".to_owned() }];
        let text = "listen: 127.0.0.1:1\nsessions: {max_live: 4, max_remote: 6}\nlog: {level: warn}\n";
        let settings = accepted(&Inputs { file: Some(file(text)), env: &env, flags });
        assert_eq!(settings.listen.port(), 3);
        assert_eq!((settings.sessions.max_live, settings.sessions.max_remote), (5, 6));
        assert_eq!(settings.log.level, "warn", "an empty variable says nothing");
    }

    #[test]
    fn every_setting_has_its_variable() {
        let values = [
            ("CARIBOU_DATA_DIR", "12"),
            ("CARIBOU_EXTENSIONS_CONFIG_PATH", "/x.json"),
            ("CARIBOU_SESSIONS_IDLE_SECONDS", "1.5"),
            ("CARIBOU_SESSIONS_MAX_SPAWNS", "3"),
            ("CARIBOU_STDIO_INHERIT_ENV", "A, B"),
            ("CARIBOU_CATALOG_DISCOVER_AT_START", "false"),
            ("CARIBOU_LOG_FORMAT", "json"),
        ];
        let env = |name: &str| values.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        let settings = accepted(&Inputs { file: None, env: &env, flags: Vec::new() });
        assert_eq!(settings.data_dir, Path::new("12"));
        assert_eq!(settings.extensions_config_path.as_deref(), Some(Path::new("/x.json")));
        assert_eq!(settings.stdio.inherit_env, ["A", "B"]);
        assert!(!settings.catalog.discover_at_start);
        let options = settings.runtime_options();
        assert_eq!((options.session_idle, options.max_spawns), (Duration::from_millis(1500), 3));
    }

    #[test]
    fn guardrails_are_read_as_deerflow_writes_them_and_tool_search_is_clamped() {
        // architecture.md §10, guardrails; contract 9.3, switch.
        let settings = load_file(
            "guardrails:\n  enabled: true\n  provider:\n    use: deerflow.guardrails.builtin:AllowlistProvider\n    \
             config:\n      denied_tools: [\"openviking_forget\"]\ntool_search: {enabled: true, auto_promote_top_k: 9}\n",
        );
        let options = settings.runtime_options();
        assert!(options.guardrails.judge("openviking_forget").is_err() && options.guardrails.judge("other").is_ok());
        assert!(options.tool_search);
        assert_eq!(options.auto_promote_top_k, 5);
        let none = load_file("guardrails: {enabled: true, provider: {use: allowlist, config: {allowed_tools: []}}}\n");
        assert!(none.runtime_options().guardrails.judge("other").is_err(), "an empty list allows none");
        let env = |name: &str| match name {
            "CARIBOU_GUARDRAILS_ENABLED" => Some("true".to_owned()),
            "CARIBOU_GUARDRAILS_PROVIDER_USE" => Some("allowlist".to_owned()),
            "CARIBOU_GUARDRAILS_PROVIDER_CONFIG_ALLOWED_TOOLS" => Some("a, b".to_owned()),
            _ => None,
        };
        let rule = accepted(&Inputs { file: None, env: &env, flags: Vec::new() }).runtime_options().guardrails;
        assert!(rule.judge("b").is_ok() && rule.judge("c").is_err());
    }

    #[test]
    fn relative_paths_of_a_file_count_from_its_folder() {
        let settings = load_file("data_dir: data\nextensions_config_path: /srv/e.json\nthreads: {root: t}\n");
        assert_eq!(settings.data_dir, Path::new("/etc/caribou/data"));
        assert_eq!(settings.threads.root.as_deref(), Some(Path::new("/etc/caribou/t")));
        assert_eq!(settings.extensions_config_path.as_deref(), Some(Path::new("/srv/e.json")));
    }

    #[test]
    fn all_problems_are_named_at_once_with_place_and_mend_and_without_values() {
        let text = "calls: {max_in_flight: 7}\nlisten: hunter2\nsessions: {max_live: 0, maxRemote: 3}\nnonsense: {deep: hunter2}\nlog: hunter2\n";
        let env = |name: &str| (name == "CARIBOU_REST_MAX_BODY_BYTES").then(|| "hunter2".to_owned());
        let Loaded { settings, problems } = load(&Inputs { file: Some(file(text)), env: &env, flags: Vec::new() });
        assert_eq!(settings.calls.max_in_flight, 7, "what is right holds");
        let seen: Vec<_> = problems.iter().map(|p| (p.line, p.path.as_str(), p.mend.as_str())).collect();
        assert_eq!(
            seen,
            [
                (Some(2), "$.listen", "write an address and a port, such as 127.0.0.1:8750"),
                (Some(3), "$.sessions.max_live", "write a whole number from 1 to 100000"),
                (Some(3), "$.sessions.maxRemote", "did you mean `sessions.max_remote`?"),
                (Some(4), "$.nonsense.deep", "remove it; `caribou config schema` prints all settings"),
                (Some(5), "$.log", "write a mapping of settings"),
                (None, "$.rest.max_body_bytes", "write a whole number from 1024 to 1073741824"),
            ]
        );
        assert_eq!(problems[5].file, "CARIBOU_REST_MAX_BODY_BYTES");
        assert!(!format!("{problems:?}").contains("hunter2"));
    }
}
