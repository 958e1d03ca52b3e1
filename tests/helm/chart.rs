//! The chart as helm renders it: which values, and what came of them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use caribou_tests::servers::target_folder;
use serde_json::Value;

/// The values that the chart is tried with, by the names of their files.
pub(crate) const EXAMPLES: [&str; 4] = ["cluster", "embedded", "hardened", "trial"];

/// The oldest release of Kubernetes that the chart supports, and the newest one that is known.
const RELEASES: [&str; 2] = ["1.30", "1.37"];

/// The smallest set of values that renders.
pub(crate) const LEAST: [&str; 4] = [
    "postgresql.existingSecret=db",
    "redis.existingSecret=redis",
    "credentials.existingSecret=keys",
    "peers.existingSecret=keys",
];

/// The manifests of one rendering.
pub(crate) struct Rendered(Vec<Value>);

/// The top of the tree.
pub(crate) fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the tree").to_owned()
}

/// A file of the tree.
pub(crate) fn text_of(path: &str) -> String {
    std::fs::read_to_string(tree().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A JSON file of the tree.
pub(crate) fn json_of(path: &str) -> Value {
    serde_json::from_str(&text_of(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The chart's default values.
pub(crate) fn values() -> Value {
    let documents = read(&text_of("helm/caribou/values.yaml"), &[]).unwrap_or_else(|wrong| panic!("{wrong}"));
    documents.into_iter().next().expect("values.yaml is a document")
}

/// Runs helm on the chart; what it printed, or why it refused.
pub(crate) fn helm(arguments: &[&str]) -> Result<String, String> {
    let folder = target_folder().join("third-party/helm");
    let helm = folder.join("helm");
    assert!(helm.is_file(), "{} is missing; run tests/run, which installs it", helm.display());
    let output = Command::new(helm)
        .args(arguments)
        .current_dir(tree().join("helm/caribou"))
        // Nothing of whoever runs the tests takes part.
        .env_clear()
        .env("HOME", folder.join("home"))
        .output()
        .expect("helm can be run");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(said(&output.stdout)) } else { Err(said(&output.stderr) + &said(&output.stdout)) }
}

/// What the chart says to these settings, each as `path=value`, laid over a file of `ci` if one is named.
pub(crate) fn render(example: Option<&str>, settings: &[&str]) -> Result<Rendered, String> {
    let file = example.map(|name| format!("ci/{name}-values.yaml"));
    let mut arguments = vec!["template", "demo", ".", "--namespace", "agents"];
    arguments.extend(file.iter().flat_map(|file| ["--values", file]));
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let text = helm(&arguments)?;
    Ok(Rendered(read(&text, &[]).unwrap_or_else(|refused| panic!("{refused}"))))
}

/// The text of the manifests of one of the files of `ci`.
pub(crate) fn text_of_example(name: &str) -> String {
    helm(&["template", "demo", ".", "--values", &format!("ci/{name}-values.yaml")]).expect("an example is right")
}

/// The manifests of one of the files of `ci`.
pub(crate) fn example(name: &str) -> Rendered {
    render(Some(name), &[]).unwrap_or_else(|refused| panic!("{name}: {refused}"))
}

/// The manifests of a text, or what the schemas of Kubernetes have against them.
pub(crate) fn checked(text: &str) -> Result<Vec<Value>, String> {
    read(text, &RELEASES)
}

/// The YAML documents of a text, or what is wrong with them.
pub(crate) fn read(text: &str, releases: &[&str]) -> Result<Vec<Value>, String> {
    let python = target_folder().join("third-party/venv-kubernetes/bin/python");
    assert!(python.is_file(), "{} is missing; run tests/run, which installs it", python.display());
    let mut checking = Command::new(python)
        .arg(tree().join("tests/helm/validate.py"))
        .args(releases)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python can be run");
    let mut stdin = checking.stdin.take().expect("stdin is a pipe");
    stdin.write_all(text.as_bytes()).expect("python reads");
    drop(stdin);
    let output = checking.wait_with_output().expect("python ends");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(serde_json::from_slice(&output.stdout).expect("what python wrote is JSON"))
}

impl Rendered {
    /// Those of one kind.
    pub(crate) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |manifest| manifest["kind"] == kind)
    }

    /// The one with this kind and name.
    pub(crate) fn one(&self, kind: &str, name: &str) -> &Value {
        let found = self.of_kind(kind).find(|manifest| manifest["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("there is no {kind}/{name}"))
    }

    /// The pods it makes, by what makes them.
    pub(crate) fn pods(&self) -> impl Iterator<Item = (String, &Value)> {
        self.0.iter().filter_map(|manifest| {
            let pod = match manifest["kind"].as_str()? {
                "Pod" => &manifest["spec"],
                "Deployment" | "StatefulSet" | "Job" => &manifest["spec"]["template"]["spec"],
                _ => return None,
            };
            Some((format!("{}/{}", manifest["kind"], manifest["metadata"]["name"]), pod))
        })
    }

    /// The pod of a replica.
    pub(crate) fn replica(&self) -> &Value {
        let kinds = ["Deployment", "StatefulSet"];
        let is_replica = |manifest: &&Value| {
            let named = manifest["metadata"]["name"] == "demo-caribou";
            named && kinds.iter().any(|kind| manifest["kind"] == *kind)
        };
        &self.0.iter().find(is_replica).expect("a release has replicas")["spec"]["template"]["spec"]
    }
}

/// The items of a list, none when there is none.
pub(crate) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// All containers of a pod.
pub(crate) fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    items(&pod["initContainers"]).chain(items(&pod["containers"]))
}
