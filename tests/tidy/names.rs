//! Names that say nothing.

use crate::tree::Tree;

const EMPTY: [&str; 14] = [
    "common", "helper", "helpers", "util", "utils", "misc", "manager", "managers", "service", "handler", "handlers",
    "types", "models", "model",
];

fn empty_names(tree: &Tree) -> Vec<String> {
    let says_nothing = |path: &&str| path.split('/').any(|part| EMPTY.contains(&part.trim_end_matches(".rs")));
    tree.rust()
        .map(|(path, _)| path)
        .filter(says_nothing)
        .map(|path| format!("{path}: the name says nothing"))
        .collect()
}

#[test]
fn every_name_says_something() {
    assert_eq!(empty_names(&Tree::real()), Vec::<String>::new());
}

#[test]
fn empty_names_of_files_and_folders_are_found() {
    let files = ["crates/a/src/utils.rs", "crates/a/src/types/mod.rs", "services/caribou/src/main.rs"];
    let tree = Tree::of(files.map(|path| (path, "")));
    let expected = ["crates/a/src/types/mod.rs: the name says nothing", "crates/a/src/utils.rs: the name says nothing"];
    assert_eq!(empty_names(&tree), expected);
}
