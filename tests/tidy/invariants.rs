//! Every invariant of the table is kept somewhere and tested somewhere.

use crate::tree::{Tree, parted, words};

const TABLE: &str = "crates/core/src/invariants.rs";

fn unused_invariants(tree: &Tree) -> Vec<String> {
    let table = tree.file(TABLE).unwrap_or_default();
    let ids: Vec<&str> = table.split("invariant(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let mut breaches = Vec::new();
    if ids.is_empty() {
        breaches.push(format!("{TABLE}: no invariant is in it"));
    }
    let others: Vec<(&str, &str)> =
        tree.rust().filter(|(path, _)| *path != TABLE && !path.starts_with("tests/tidy/")).collect();
    for id in ids {
        let kept = others.iter().any(|(path, text)| words(parted(path, text).0).any(|word| word == id));
        let tested = others.iter().any(|(path, text)| words(parted(path, text).1).any(|word| word == id));
        if !kept {
            breaches.push(format!("{id}: no source file names it"));
        }
        if !tested {
            breaches.push(format!("{id}: no test names it"));
        }
    }
    breaches
}

#[test]
fn every_invariant_is_kept_and_tested() {
    assert_eq!(unused_invariants(&Tree::real()), Vec::<String>::new());
}

#[test]
fn an_invariant_that_nobody_keeps_or_tests_is_found() {
    let tree = Tree::of([
        (TABLE, "[invariant(\"S2\", \"…\"), invariant(\"B1\", \"…\")]"),
        ("crates/a/src/a.rs", "//! Keeps S2.\n#[cfg(test)]\nmod tests {}\n"),
        ("tests/contract/b.rs", "//! Tests B1, not S22.\n"),
    ]);
    assert_eq!(unused_invariants(&tree), ["S2: no test names it", "B1: no source file names it"]);
}
