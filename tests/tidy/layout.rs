//! What lies at the top of the tree, and that the README's two commands exist.

use crate::tree::Tree;

/// What a visitor sees.
const VISIBLE: [&str; 10] =
    ["Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "crates", "helm", "migrations", "proto", "services", "tests"];

/// What tools look for.
const HIDDEN: [&str; 7] = [".cargo", ".ci", ".clippy.toml", ".config", ".deny.toml", ".gitignore", ".rustfmt.toml"];

/// What must be there.
const NEEDED: [&str; 9] =
    ["Cargo.lock", "Cargo.toml", "LICENSE", "README.md", ".ci", ".deny.toml", "crates", "services", "tests"];

/// The first command: everything to see, nothing to install.
const DEMO: &str = "cargo run -- demo";

/// The second command: everything checked.
const CHECK: &str = "tests/run";

fn misplaced(tree: &Tree) -> Vec<String> {
    let top = tree.top();
    let strange = top.iter().filter(|name| !VISIBLE.contains(name) && !HIDDEN.contains(name));
    let missing = NEEDED.iter().filter(|name| !top.contains(*name));
    strange
        .map(|name| format!("{name}: does not belong at the top"))
        .chain(missing.map(|name| format!("{name}: is missing")))
        .collect()
}

fn dead_commands(tree: &Tree) -> Vec<String> {
    let readme = tree.file("README.md").unwrap_or_default();
    let unnamed = [DEMO, CHECK].into_iter().filter(|command| !readme.lines().any(|line| line == *command));
    let mut breaches: Vec<String> = unnamed.map(|command| format!("README.md: `{command}` is not in it")).collect();
    if !tree.file(CHECK).is_some_and(|text| text.starts_with("#!")) {
        breaches.push(format!("{CHECK}: is not a program"));
    }
    let workspace = tree.file("Cargo.toml").unwrap_or_default();
    let demo = tree.rust().any(|(path, _)| path.starts_with("services/caribou/src/") && path.contains("demo"));
    if !(workspace.contains(r#"default-members = ["services/caribou"]"#) && demo) {
        breaches.push(format!("{DEMO}: runs nothing"));
    }
    breaches
}

#[test]
fn the_top_of_the_tree_is_as_small_as_it_should_be() {
    assert_eq!(misplaced(&Tree::real()), Vec::<String>::new());
}

#[test]
fn the_two_commands_of_the_readme_exist() {
    assert_eq!(dead_commands(&Tree::real()), Vec::<String>::new());
}

#[test]
fn a_strange_top_and_dead_commands_are_found() {
    let tree = Tree::of([("README.md", "Run:\ncargo run -- demo\n"), ("notes.txt", ""), ("tests/run", "cargo test\n")]);
    let breaches = misplaced(&tree);
    assert_eq!(breaches[0], "notes.txt: does not belong at the top");
    assert!(breaches.contains(&"LICENSE: is missing".to_owned()), "{breaches:?}");
    let expected =
        ["README.md: `tests/run` is not in it", "tests/run: is not a program", "cargo run -- demo: runs nothing"];
    assert_eq!(dead_commands(&tree), expected);
}
