//! That no secret lies where everybody may read: only in Secrets, and by reference.

use serde_json::Value;

use crate::chart::{EXAMPLES, containers, example, items};

/// Variables that hold secrets.
const SECRET: [&str; 7] = [
    "CARIBOU_CLUSTER_SECRET",
    "CARIBOU_CREDENTIALS_KEY",
    "CARIBOU_DATABASE_URL",
    "CARIBOU_MCP_TASKS_NOTIFY_WEBHOOK_LOOK_UP_URL",
    "CARIBOU_MCP_TASKS_NOTIFY_WEBHOOK_SECRETS",
    "CARIBOU_MCP_TASKS_NOTIFY_WEBHOOK_URL",
    "POSTGRES_PASSWORD",
];

#[test]
fn secrets_are_named_and_never_written() {
    let mut seen = Vec::new();
    for name in EXAMPLES {
        for (pod, spec) in example(name).pods() {
            for variable in containers(spec).flat_map(|container| items(&container["env"])) {
                let Some(secret) = SECRET.iter().find(|secret| variable["name"] == **secret) else { continue };
                let reference = &variable["valueFrom"]["secretKeyRef"];
                assert!(reference["name"].is_string() && reference["key"].is_string(), "{name} {pod}: {secret}");
                assert!(variable.get("value").is_none(), "{name} {pod}: {secret}");
                seen.push(*secret);
            }
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, SECRET, "each of them is used somewhere");
}

#[test]
fn config_maps_hold_no_secret() {
    for name in EXAMPLES {
        let rendered = example(name);
        for map in rendered.of_kind("ConfigMap") {
            let text = map["data"].to_string();
            for trace in ["postgres://", "redis://", "rediss://", "whsec_", "Bearer ", "PRIVATE KEY"] {
                assert!(!text.contains(trace), "{name} {}: {trace}", map["metadata"]["name"]);
            }
        }
    }
    let rendered = example("embedded");
    let map = rendered.one("ConfigMap", "demo-caribou-extensions");
    let document: Value = serde_json::from_str(map["data"]["extensions_config.json"].as_str().unwrap()).unwrap();
    assert_eq!(document["mcpServers"]["wiki"]["headers"]["Authorization"], "$WIKI_AUTHORIZATION", "taken from the pod");
}

#[test]
fn the_chart_makes_secrets_for_a_trial_only() {
    for name in EXAMPLES {
        let made: Vec<Value> = example(name).of_kind("Secret").cloned().collect();
        assert_eq!(made.len(), usize::from(name == "trial"), "{name}");
        for secret in made {
            assert_eq!(secret["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
            // 44 characters, as Caribou reads keys, once more in base64.
            assert_eq!(secret["data"]["credentials-key"].as_str().unwrap().len(), 60);
            assert_eq!(secret["data"]["peer-secret"].as_str().unwrap().len(), 64);
        }
    }
}
