//! Who may depend on whom: the table of the architecture.

use crate::tree::Tree;

/// Which of our crates a crate may use. The binary and the tests may use all.
const OURS: [(&str, &[&str]); 18] = [
    ("caribou-core", &[]),
    ("caribou-ports", &["caribou-core"]),
    ("caribou-runtime", &["caribou-core", "caribou-ports"]),
    ("caribou-egress", &["caribou-core"]),
    ("caribou-mcp", &["caribou-core", "caribou-egress", "caribou-ports", "caribou-trace"]),
    ("caribou-mcp-endpoint", &["caribou-core", "caribou-ports", "caribou-runtime", "caribou-mcp", "caribou-trace"]),
    ("caribou-rest", &["caribou-core", "caribou-runtime", "caribou-trace"]),
    ("caribou-grpc", &["caribou-core", "caribou-ports", "caribou-proto", "caribou-runtime", "caribou-trace"]),
    ("caribou-identity", &["caribou-core", "caribou-ports"]),
    ("caribou-interceptors", &["caribou-core", "caribou-ports", "caribou-proto"]),
    ("caribou-proto", &[]),
    ("caribou-store", &["caribou-core", "caribou-ports"]),
    ("caribou-oauth", &["caribou-core", "caribou-egress", "caribou-ports"]),
    ("caribou-signals", &["caribou-core", "caribou-ports"]),
    ("caribou-workspace", &["caribou-core", "caribou-ports"]),
    ("caribou-notify", &["caribou-core", "caribou-ports"]),
    ("caribou-trace", &[]),
    ("caribou-tests", &["caribou"]),
];

/// All that the innermost crates may use of others: nothing async, nothing that touches the world.
const INNERMOST: [(&str, &[&str]); 2] = [
    ("caribou-core", &["jsonc-parser", "regex", "serde", "serde_json", "sha2", "thiserror"]),
    ("caribou-ports", &["serde", "serde_json", "thiserror"]),
];

/// Libraries that only these crates may use, beside the binary and the tests.
const RESERVED: [(&str, &[&str]); 9] = [
    ("anyhow", &[]),
    ("axum", &["caribou-rest", "caribou-mcp-endpoint"]),
    ("ractor", &["caribou-runtime"]),
    ("redis", &["caribou-signals"]),
    (
        "reqwest",
        &[
            "caribou-egress",
            "caribou-identity",
            "caribou-interceptors",
            "caribou-mcp",
            "caribou-oauth",
            "caribou-notify",
        ],
    ),
    ("rmcp", &["caribou-mcp"]),
    ("rustix", &["caribou-grpc", "caribou-mcp", "caribou-workspace"]),
    ("sqlx", &["caribou-store"]),
    ("tonic", &["caribou-grpc", "caribou-interceptors", "caribou-proto"]),
];

/// Crates that put everything together.
const WHOLE: [&str; 2] = ["caribou", "caribou-tests"];

fn forbidden_dependencies(tree: &Tree) -> Vec<String> {
    let mut breaches = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with("/Cargo.toml")) {
        let manifest = Manifest::read(text);
        for (dependency, inherited) in &manifest.dependencies {
            if let Some(reason) = refusal(&manifest.name, dependency) {
                breaches.push(format!("{path}: {dependency}: {reason}"));
            }
            if !inherited {
                breaches.push(format!("{path}: {dependency}: its version belongs into the workspace"));
            }
        }
    }
    breaches
}

fn refusal(package: &str, dependency: &str) -> Option<&'static str> {
    let listed = |table: &[(&str, &'static [&'static str])], key: &str| {
        table.iter().find(|(name, _)| *name == key).map(|(_, list)| *list)
    };
    if dependency == "caribou" && package != "caribou-tests" {
        return Some("nothing but the tests uses the binary");
    }
    if WHOLE.contains(&package) {
        return None;
    }
    if dependency.starts_with("caribou") {
        let Some(allowed) = listed(&OURS, package) else { return Some("the crate is not in the table") };
        return (!allowed.contains(&dependency)).then_some("the arrow points the wrong way");
    }
    if let Some(allowed) = listed(&INNERMOST, package) {
        return (!allowed.contains(&dependency)).then_some("too heavy for an innermost crate");
    }
    let users = listed(&RESERVED, dependency)?;
    (!users.contains(&package)).then_some("reserved for another crate")
}

/// What this rule needs of a `Cargo.toml`.
struct Manifest {
    name: String,
    /// Name, and whether the version is the workspace's. Those of tests and build scripts too count as a crate's own
    /// where the architecture names an arrow, so only `dev-dependencies` are left out.
    dependencies: Vec<(String, bool)>,
}

impl Manifest {
    fn read(text: &str) -> Self {
        let mut manifest = Self { name: String::new(), dependencies: Vec::new() };
        let mut section = "";
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(header) = line.strip_prefix('[') {
                section = header.trim_end_matches(']');
                continue;
            }
            let Some((key, value)) = line.split_once('=') else { continue };
            if section == "package" && key.trim() == "name" {
                manifest.name = value.trim().trim_matches('"').to_owned();
            }
            let dependencies = section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
            if dependencies && section != "workspace.dependencies" {
                let name = key.split('.').next().unwrap_or_default().trim();
                let inherited = line.replace(' ', "").contains("workspace=true");
                manifest.dependencies.push((name.to_owned(), inherited));
            }
        }
        manifest
    }
}

#[test]
fn every_arrow_points_the_right_way() {
    assert_eq!(forbidden_dependencies(&Tree::real()), Vec::<String>::new());
}

#[test]
fn every_crate_of_the_tree_is_looked_at() {
    let tree = Tree::real();
    let names: Vec<String> = tree
        .files()
        .filter(|(path, _)| path.ends_with("/Cargo.toml"))
        .map(|(_, text)| Manifest::read(text).name)
        .collect();
    assert!(names.len() >= 7 && names.iter().all(|name| name.starts_with("caribou")), "{names:?}");
}

#[test]
fn wrong_arrows_heavy_libraries_and_own_versions_are_found() {
    let core = "[package]\nname = \"caribou-core\"\n[dependencies]\ntokio.workspace = true\n\
                [dev-dependencies]\nproptest.workspace = true\n";
    let mcp = "[package]\nname = \"caribou-mcp\"\n[dependencies]\ncaribou-runtime.workspace = true\nhttp = \"1\"\n\
               [target.'cfg(unix)'.dependencies]\nanyhow = { workspace = true }\n";
    let tree = Tree::of([("crates/core/Cargo.toml", core), ("crates/mcp/Cargo.toml", mcp)]);
    assert_eq!(
        forbidden_dependencies(&tree),
        [
            "crates/core/Cargo.toml: tokio: too heavy for an innermost crate",
            "crates/mcp/Cargo.toml: caribou-runtime: the arrow points the wrong way",
            "crates/mcp/Cargo.toml: http: its version belongs into the workspace",
            "crates/mcp/Cargo.toml: anyhow: reserved for another crate",
        ]
    );
}
