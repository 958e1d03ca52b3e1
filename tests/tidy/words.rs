//! What may not stand in the text: unfinished code, and what only its authors understand.

use crate::tree::{Tree, words};

/// Marks of unfinished code, parted so that this file does not hold them.
const UNFINISHED: [[&str; 2]; 6] =
    [["todo", "!"], ["unimplemented", "!"], ["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["//! place", "holder"]];

/// Paths that exist only where the tree was written.
const MACHINE: [[&str; 2]; 3] = [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"]];

fn unfinished(tree: &Tree) -> Vec<String> {
    let marks = UNFINISHED.map(|parts| parts.concat());
    lines_with(tree, |line| marks.iter().any(|mark| line.contains(mark)), "unfinished")
}

fn private_references(tree: &Tree) -> Vec<String> {
    let paths = MACHINE.map(|parts| parts.concat());
    let private = |line: &str| {
        let comment = line.find("//").map_or("", |at| &line[at..]);
        paths.iter().any(|path| comment.contains(path)) || has_number(comment) || has_case(comment)
    };
    lines_with(tree, private, "speaks of what a reader cannot see")
}

/// `#123` after a blank.
fn has_number(comment: &str) -> bool {
    comment.split(" #").skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The id of a case of ours: a letter and two digits, such as the sixth of a list would have.
fn has_case(comment: &str) -> bool {
    words(comment).any(|word| {
        let digits = word.strip_prefix('B').unwrap_or_default();
        digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn lines_with(tree: &Tree, bad: impl Fn(&str) -> bool, reason: &str) -> Vec<String> {
    let lines =
        tree.rust().flat_map(|(path, text)| text.lines().enumerate().map(move |(at, line)| (path, at + 1, line)));
    lines.filter(|(_, _, line)| bad(line)).map(|(path, at, _)| format!("{path}:{at}: {reason}")).collect()
}

#[test]
fn nothing_is_unfinished() {
    assert_eq!(unfinished(&Tree::real()), Vec::<String>::new());
}

#[test]
fn comments_speak_to_every_reader() {
    assert_eq!(private_references(&Tree::real()), Vec::<String>::new());
}

#[test]
fn unfinished_code_and_private_references_are_found() {
    let macro_call = ["    todo", "!()"].concat();
    let case = ["// as in B", "12"].concat();
    let number = ["let x = 1; // see #", "77"].concat();
    let text = format!("fn a() {{\n{macro_call}\n}}\n{case}\n{number}\n#[test] // invariant B1\n");
    let tree = Tree::of([("crates/a/src/b.rs", &text)]);
    assert_eq!(unfinished(&tree), ["crates/a/src/b.rs:2: unfinished"]);
    let expected = [4, 5].map(|at| format!("crates/a/src/b.rs:{at}: speaks of what a reader cannot see"));
    assert_eq!(private_references(&tree), expected);
}
