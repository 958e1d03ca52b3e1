//! What the tests are harmed by on demand is in no release.

use crate::tree::Tree;

/// The module with the faults, and the name of the variable that asks for them, parted so that this file does not hold it.
const MODULE: &str = "services/caribou/src/faults.rs";
const VARIABLE: [&str; 2] = ["CARIBOU_", "FAULT"];

/// Who may switch the feature on: the package of the tests, which no release is built from.
const TESTS: &str = "tests/Cargo.toml";

fn breaches(tree: &Tree) -> Vec<String> {
    let variable = VARIABLE.concat();
    let named = tree.rust().filter(|(path, text)| text.contains(&variable) && !path.starts_with("tests/"));
    let named = named.filter(|(path, _)| *path != MODULE).map(|(path, _)| format!("{path}: names {variable}"));
    let is_on = |text: &str| {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        lines.any(|line| line.contains("\"faults\"") || line.contains("caribou/faults"))
    };
    let manifests = tree.files().filter(|(path, text)| path.ends_with(".toml") && *path != TESTS && is_on(text));
    let on = manifests.map(|(path, _)| format!("{path}: switches the feature `faults` on"));
    let ungated = tree.rust().filter(|(path, text)| path.starts_with("services/") && is_ungated(text));
    let ungated = ungated.map(|(path, _)| format!("{path}: uses the faults without the feature"));
    named.chain(on).chain(ungated).collect()
}

/// Whether the module is declared or used on a line that does not follow its condition.
fn is_ungated(text: &str) -> bool {
    let mut before = "";
    text.lines().any(|line| {
        let is_use = line.contains("mod faults;") || line.contains("faults::");
        let is_free = is_use && before.trim() != "#[cfg(feature = \"faults\")]";
        before = line;
        is_free
    })
}

#[test]
fn no_release_can_be_told_to_fail() {
    assert_eq!(breaches(&Tree::real()), Vec::<String>::new());
}

#[test]
fn faults_in_a_release_are_found() {
    let variable = VARIABLE.concat();
    let naming = format!("const NAME: &str = \"{variable}\";");
    let tree = Tree::of([
        (
            "services/caribou/Cargo.toml",
            "[features]\n# \"faults\"\ndefault = [\"mimalloc\", \"faults\"]\nfaults = []\n",
        ),
        (MODULE, &naming),
        ("services/caribou/src/lib.rs", "#[cfg(feature = \"faults\")]\nmod faults;\n"),
        ("services/caribou/src/assemble.rs", "let outside = crate::faults::between(outside);\n"),
        ("crates/runtime/src/lib.rs", &naming),
        (TESTS, "caribou = { workspace = true, features = [\"faults\"] }"),
    ]);
    let expected = [
        format!("crates/runtime/src/lib.rs: names {variable}"),
        "services/caribou/Cargo.toml: switches the feature `faults` on".to_owned(),
        "services/caribou/src/assemble.rs: uses the faults without the feature".to_owned(),
    ];
    assert_eq!(breaches(&tree), expected);
}
