//! That the chart and Caribou speak of the same settings.

use std::collections::BTreeSet;
use std::path::PathBuf;

use caribou::settings::{AuthMode, File, Inputs, load};
use serde_json::Value;

use crate::chart::{EXAMPLES, example, items, json_of, text_of, tree};

const SCHEMA: &str = "helm/caribou/values.schema.json";

/// Set to write what `config` may hold anew, after a change of the settings.
const WRITE: &str = "CARIBOU_WRITE_CHART";

/// What the chart sets itself, or only a Secret may hold: not for `config`.
const SET_BY_CHART: [&str; 18] = [
    "cluster.advertise",
    "cluster.allow_plaintext",
    "cluster.listen",
    "cluster.secret",
    "cluster.tls",
    "config.source",
    "data_dir",
    "database",
    "database_url",
    "deployment.multi_instance",
    "extensions_config_path",
    "grpc.listen",
    "listen",
    "network.proxy",
    "redis.key_prefix",
    "threads.root",
    // The own folder of a pod never comes back, so no thread may be bound to it.
    "threads.shared",
    "tls",
];

/// The same, of sections whose other settings are free.
const SECRET: [&str; 4] = [
    "mcp_tasks.notify.webhook.look_up_url",
    "mcp_tasks.notify.webhook.secrets",
    "mcp_tasks.notify.webhook.url",
    "redis.url",
];

/// Variables of ours that are no settings.
const NO_SETTINGS: [&str; 2] = ["CARIBOU_CONFIG", "CARIBOU_CREDENTIALS_KEY"];

/// Takes a setting out of a schema, and its section when nothing else is in it.
fn take_out(schema: &mut Value, path: &str) {
    let Some(properties) = schema["properties"].as_object_mut() else { return };
    let Some((section, rest)) = path.split_once('.') else {
        properties.shift_remove(path);
        return;
    };
    let Some(inner) = properties.get_mut(section) else { return };
    take_out(inner, rest);
    if inner["properties"].as_object().is_some_and(|left| left.is_empty()) {
        properties.shift_remove(section);
    }
}

/// Defaults and titles tell helm nothing; they would only go stale together with the sections that were taken out.
fn strip(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            let is_map_of_settings = |key: &str| key == "properties";
            for name in ["default", "title", "$schema", "format"] {
                if entries.get(name).is_some_and(|value| name == "default" || value.is_string()) {
                    entries.shift_remove(name);
                }
            }
            for (key, value) in entries.iter_mut() {
                match value {
                    Value::Object(settings) if is_map_of_settings(key) => settings.values_mut().for_each(strip),
                    value => strip(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// What `config` may hold, as the settings are now.
fn of_config() -> Value {
    let mut schema = json_of("services/caribou/config.schema.json");
    for path in SET_BY_CHART.into_iter().chain(SECRET) {
        take_out(&mut schema, path);
    }
    strip(&mut schema);
    let modes = &mut schema["properties"]["auth"]["properties"]["mode"]["oneOf"];
    modes.as_array_mut().expect("modes are listed").retain(|mode| mode["const"] != "disabled");
    schema["description"] = "What config.yaml may hold beside what the chart sets itself.".into();
    schema
}

#[test]
fn the_chart_knows_every_setting() {
    let mut schema = json_of(SCHEMA);
    let expected = of_config();
    if std::env::var_os(WRITE).is_some() {
        schema["properties"]["config"] = expected;
        let text = serde_json::to_string_pretty(&schema).unwrap();
        return std::fs::write(tree().join(SCHEMA), text + "\n").unwrap();
    }
    assert!(
        schema["properties"]["config"] == expected,
        "{SCHEMA} is behind the settings; once: {WRITE}=1 cargo nextest run -p caribou-tests --test helm every_setting"
    );
}

/// The paths of settings and sections that nothing is said about.
fn undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{key}");
        if value["description"].as_str().is_none_or(|text| text.trim().is_empty()) {
            found.push(path.clone());
        }
        undescribed(value, &format!("{path}."), found);
    }
}

#[test]
fn every_setting_is_described() {
    let mut found = Vec::new();
    undescribed(&json_of("services/caribou/config.schema.json"), "", &mut found);
    assert_eq!(found, Vec::<String>::new(), "`caribou config schema` and `caribou config init` say nothing of these");
    let bare = serde_json::json!({ "properties": { "a": { "description": "x", "properties": { "b": {} } } } });
    undescribed(&bare, "", &mut found);
    assert_eq!(found, ["a.b"]);
}

/// The names of the variables of all settings.
fn variables(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}_{}", key.to_uppercase());
        if value["properties"].is_object() {
            variables(value, &path, found);
        } else {
            found.insert(path);
        }
    }
}

#[test]
fn every_variable_the_chart_sets_is_a_setting() {
    let mut known = BTreeSet::from(NO_SETTINGS.map(str::to_owned));
    variables(&json_of("services/caribou/config.schema.json"), "CARIBOU", &mut known);
    for name in EXAMPLES {
        for variable in items(&example(name).replica()["containers"][0]["env"]) {
            let variable = variable["name"].as_str().unwrap();
            assert!(!variable.starts_with("CARIBOU_") || known.contains(variable), "{name}: there is no {variable}");
        }
    }
}

/// What an operator's Secrets may hold.
fn secret(variable: &str) -> Option<String> {
    let text = match variable {
        "CARIBOU_CLUSTER_SECRET" => "0123456789abcdef0123456789abcdef",
        "CARIBOU_DATABASE_URL" => "postgres://caribou:hunter2@db.example/caribou?sslmode=verify-full",
        "CARIBOU_MCP_TASKS_NOTIFY_WEBHOOK_LOOK_UP_URL" => "https://runs.example/{run_id}",
        "CARIBOU_MCP_TASKS_NOTIFY_WEBHOOK_SECRETS" => "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "CARIBOU_MCP_TASKS_NOTIFY_WEBHOOK_URL" => "https://agents.example/events",
        "CARIBOU_REDIS_URL" => "rediss://:hunter2@redis.example:6379",
        _ => return None,
    };
    Some(text.to_owned())
}

#[test]
fn caribou_accepts_what_the_chart_tells_it() {
    for name in EXAMPLES {
        let rendered = example(name);
        let container = &rendered.replica()["containers"][0];
        let map = rendered.one("ConfigMap", "demo-caribou-settings");
        let text = map["data"]["config.yaml"].as_str().unwrap().to_owned();
        let file = File { path: PathBuf::from("/etc/caribou/settings/config.yaml"), text };
        let variable = |wanted: &str| {
            let found = items(&container["env"]).find(|one| one["name"] == wanted)?;
            // As Kubernetes puts it in.
            found["value"].as_str().map_or_else(|| secret(wanted), |text| Some(text.replace("$(POD_IP)", "10.0.0.7")))
        };
        let loaded = load(&Inputs { file: Some(file), env: &variable, flags: Vec::new() });
        assert!(loaded.problems.is_empty(), "{name}: {:?}", loaded.problems);
        let settings = loaded.settings;
        assert_ne!(settings.auth.mode, AuthMode::Disabled, "{name}");
        assert!(settings.auth.may_listen(settings.listen).is_ok(), "{name}");
        assert_eq!(settings.listen.port(), 8750, "{name}");
        assert_eq!(settings.grpc.listen.map(|address| address.port()), Some(8752), "{name}");
        assert_eq!(settings.deployment.multi_instance, name != "embedded", "{name}");
        assert_eq!(settings.tls.cert_file.is_some(), name == "hardened", "{name}");
        let hosts: &[&str] = if name == "trial" { &[] } else { &["caribou.example.org"] };
        assert_eq!(settings.rest.allowed_hosts, hosts, "{name}: web pages of the entries may call");
    }
}

#[test]
fn folders_that_are_written_to_are_mounted_writable() {
    for name in EXAMPLES {
        let rendered = example(name);
        let container = &rendered.replica()["containers"][0];
        let writable: Vec<_> = items(&container["volumeMounts"])
            .filter(|mount| mount["readOnly"] != true)
            .map(|mount| mount["mountPath"].as_str().unwrap())
            .collect();
        let image = text_of("services/caribou/Dockerfile");
        for folder in ["/var/lib/caribou", "/home/caribou", "/tmp"] {
            assert!(writable.contains(&folder), "{name}: {folder}");
            assert!(image.contains(folder), "{folder}");
        }
        let threads = items(&container["env"]).find(|one| one["name"] == "CARIBOU_THREADS_ROOT");
        if let Some(threads) = threads {
            assert!(writable.contains(&threads["value"].as_str().unwrap()), "{name}");
        }
    }
}
