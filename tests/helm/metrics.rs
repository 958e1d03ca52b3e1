//! That dashboard and alerts ask for metrics that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::chart::{example, json_of, read, text_of, tree};

/// How each kind of instrument is shown to Prometheus.
const INSTRUMENTS: [(&str, &[&str]); 6] = [
    ("u64_counter", &["_total"]),
    ("f64_counter", &["_total"]),
    ("u64_gauge", &[""]),
    ("f64_gauge", &[""]),
    ("i64_up_down_counter", &[""]),
    ("f64_histogram", &["_bucket", "_sum", "_count"]),
];

/// The names of all metrics of a text of Rust, as Prometheus sees them.
fn made_in(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (instrument, endings) in INSTRUMENTS {
        for made in text.split(&format!("{instrument}(\"")).skip(1) {
            let Some((name, rest)) = made.split_once('"') else { continue };
            let until = rest.split(".build()").next().unwrap_or_default();
            let unit = if until.contains(".with_unit(\"s\")") { "_seconds" } else { "" };
            names.extend(endings.iter().map(|ending| format!("{name}{unit}{ending}")));
        }
    }
    names
}

/// Instruments of ours that are of no kind known here, so that none is overlooked.
fn of_unknown_kind(text: &str) -> Vec<String> {
    let made = text.match_indices("(\"caribou_").map(|(at, _)| &text[..at]);
    let kinds = made.map(|before| {
        let start = before.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
        &before[start..]
    });
    let is_instrument = |kind: &&str| ["_counter", "_gauge", "_histogram"].iter().any(|end| kind.ends_with(end));
    let is_known = |kind: &&str| INSTRUMENTS.iter().any(|(known, _)| known == kind);
    kinds.filter(is_instrument).filter(|kind| !is_known(kind)).map(str::to_owned).collect()
}

fn made_below(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            made_below(&path, names);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(of_unknown_kind(&text), Vec::<String>::new(), "{}: add its kind to INSTRUMENTS", path.display());
            names.extend(made_in(&text));
        }
    }
}

/// All that Caribou counts.
fn all_metrics() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in ["crates", "services"] {
        made_below(&tree().join(folder), &mut names);
    }
    names
}

/// The words of a text that are names of metrics.
fn asked_for(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("caribou_")).collect()
}

fn queries(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                match value.as_str() {
                    Some(text) if ["expr", "query", "definition"].contains(&key.as_str()) => {
                        found.push(text.to_owned())
                    }
                    _ => queries(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| queries(item, found)),
        _ => {}
    }
}

#[test]
fn dashboard_and_alerts_ask_for_metrics_that_exist() {
    let made = all_metrics();
    let mut dashboard = Vec::new();
    queries(&json_of("helm/caribou/dashboards/caribou.json"), &mut dashboard);
    let mut alerts = Vec::new();
    read(&text_of("helm/caribou/alerts.yaml"), &[]).unwrap().iter().for_each(|rules| queries(rules, &mut alerts));
    assert!(dashboard.len() > 20 && alerts.len() > 5, "{} queries and {} alerts", dashboard.len(), alerts.len());
    for query in dashboard.iter().chain(&alerts) {
        for name in asked_for(query) {
            assert!(made.contains(name), "{name}: nobody makes it");
        }
        assert_eq!(query.matches('(').count(), query.matches(')').count(), "{query}");
        assert_eq!(query.matches('{').count(), query.matches('}').count(), "{query}");
    }
}

#[test]
fn the_dashboard_shows_every_metric() {
    let mut queries_of_dashboard = Vec::new();
    queries(&json_of("helm/caribou/dashboards/caribou.json"), &mut queries_of_dashboard);
    let text = queries_of_dashboard.join("\n");
    let shown = asked_for(&text);
    // Sums and counts of what is shown by its buckets say nothing new.
    let unseen: Vec<_> = all_metrics()
        .into_iter()
        .filter(|name| !name.ends_with("_sum") && !name.ends_with("_count") && !shown.contains(name.as_str()))
        .collect();
    assert_eq!(unseen, Vec::<String>::new(), "helm/caribou/dashboards/caribou.json does not show them");
}

#[test]
fn the_readme_tells_of_every_metric() {
    let readme = text_of("helm/caribou/README.md");
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `caribou_")?.split_once('`'));
    let told: BTreeSet<_> = rows.map(|(name, _)| format!("caribou_{name}")).collect();
    // A histogram is told of as a whole.
    let made = all_metrics().into_iter().filter(|name| !name.ends_with("_sum") && !name.ends_with("_count"));
    let made: BTreeSet<_> = made.map(|name| name.strip_suffix("_bucket").unwrap_or(&name).to_owned()).collect();
    assert_eq!(told, made, "the metrics in helm/caribou/README.md, and those that are made");
}

#[test]
fn dashboard_and_alerts_are_part_of_a_release_that_wants_them() {
    let rendered = example("cluster");
    let map = rendered.one("ConfigMap", "demo-caribou-dashboard");
    assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
    let shown: Value = serde_json::from_str(map["data"]["caribou.json"].as_str().unwrap()).unwrap();
    assert_eq!(shown, json_of("helm/caribou/dashboards/caribou.json"));
    let rules = &rendered.one("PrometheusRule", "demo-caribou")["spec"];
    assert_eq!(*rules, read(&text_of("helm/caribou/alerts.yaml"), &[]).unwrap()[0]);
    let endpoint = &rendered.one("ServiceMonitor", "demo-caribou")["spec"]["endpoints"][0];
    assert_eq!((&endpoint["path"], &endpoint["port"]), (&"/metrics".into(), &"http".into()));
    let quiet = example("trial");
    for kind in ["ServiceMonitor", "PrometheusRule"] {
        assert_eq!(quiet.of_kind(kind).count(), 0, "{kind}");
    }
}

#[test]
fn names_are_read_as_prometheus_shows_them() {
    let text = r#"meter.u64_counter("caribou_a").with_description("x").build(), meter
        .f64_histogram("caribou_b")
        .with_unit("s")
        .build(), meter.f64_gauge("caribou_c").build()"#;
    assert_eq!(
        made_in(text),
        [
            "caribou_a_total",
            "caribou_c",
            "caribou_b_seconds_bucket",
            "caribou_b_seconds_sum",
            "caribou_b_seconds_count"
        ]
    );
    let other = r#"meter.i64_observable_gauge("caribou_d"), text.contains("caribou_e"), meter.f64_gauge("caribou_c")"#;
    assert_eq!(of_unknown_kind(other), ["i64_observable_gauge"]);
    assert_eq!(Vec::from_iter(asked_for("sum(rate(caribou_a_total{x=\"y\"}[5m]))")), ["caribou_a_total"]);
}
