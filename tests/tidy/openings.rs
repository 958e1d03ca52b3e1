//! Every file says first what it owns; `mod.rs` and `lib.rs` hold nothing but docs and exports.

use crate::tree::{Tree, parted};

fn unopened(tree: &Tree) -> Vec<String> {
    let mute = tree.rust().filter(|(_, text)| !text.starts_with("//! "));
    mute.map(|(path, _)| format!("{path}: does not open with `//! ` and what it owns")).collect()
}

fn logic_in_exports(tree: &Tree) -> Vec<String> {
    let exports = tree.rust().filter(|(path, _)| path.ends_with("/mod.rs") || path.ends_with("/lib.rs"));
    let with_logic = exports.filter(|(path, text)| {
        let lines =
            parted(path, text).0.lines().chain(if path.starts_with("tests/") { text.lines() } else { "".lines() });
        lines
            .map(str::trim_start)
            .any(|line| line.starts_with("fn ") || line.contains(" fn ") && !line.starts_with("//"))
    });
    with_logic.map(|(path, _)| format!("{path}: holds functions; it is for docs and exports")).collect()
}

#[test]
fn every_file_says_what_it_owns() {
    assert_eq!(unopened(&Tree::real()), Vec::<String>::new());
}

#[test]
fn export_files_hold_no_logic() {
    assert_eq!(logic_in_exports(&Tree::real()), Vec::<String>::new());
}

#[test]
fn a_mute_file_and_logic_among_exports_are_found() {
    let tree = Tree::of([
        ("crates/a/src/lib.rs", "//! Docs of fn x.\npub fn x() {}\n"),
        ("crates/a/src/b.rs", "use std::fs;\n"),
        ("crates/a/src/c/mod.rs", "//! Docs.\nmod d;\npub use d::D;\n"),
    ]);
    assert_eq!(unopened(&tree), ["crates/a/src/b.rs: does not open with `//! ` and what it owns"]);
    assert_eq!(logic_in_exports(&tree), ["crates/a/src/lib.rs: holds functions; it is for docs and exports"]);
}
