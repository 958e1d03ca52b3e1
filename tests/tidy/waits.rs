//! Tests wait for conditions, never for time.

use crate::tree::{Tree, parted};

fn sleeping_tests(tree: &Tree) -> Vec<String> {
    let call = ["sleep", "("].concat();
    let mut breaches = Vec::new();
    for (path, text) in tree.rust() {
        let (code, tests) = parted(path, text);
        if is_paused(tree, path, tests) {
            continue;
        }
        let first = code.lines().count();
        let sleeping = tests.lines().enumerate().filter(|(_, line)| line.contains(&call));
        breaches.extend(sleeping.map(|(at, _)| format!("{path}:{}: a test that sleeps", first + at + 1)));
    }
    breaches
}

/// Time that is paused passes at once, so there a sleep costs nothing and hides nothing. The files beside a test that
/// pauses it share its clock.
fn is_paused(tree: &Tree, path: &str, tests: &str) -> bool {
    let folder = path.find("/tests/").map(|at| &path[..at + "/tests/".len()]);
    let beside =
        |folder: &str| tree.rust().any(|(path, text)| path.starts_with(folder) && text.contains("start_paused"));
    tests.contains("start_paused") || folder.is_some_and(beside)
}

#[test]
fn no_test_sleeps() {
    assert_eq!(sleeping_tests(&Tree::real()), Vec::<String>::new());
}

#[test]
fn a_sleeping_test_is_found_and_code_may_sleep() {
    let call = ["sleep", "(second).await;"].concat();
    let tree = Tree::of([
        ("crates/a/src/code.rs", &format!("{call}\n#[cfg(test)]\nmod tests {{\n    {call}\n}}\n")),
        ("crates/a/src/paused.rs", &format!("#[cfg(test)]\n#[tokio::test(start_paused = true)]\n{call}\n")),
        ("crates/a/tests/paused.rs", "#[tokio::test(start_paused = true)]"),
        ("crates/a/tests/fake/mod.rs", &call),
        ("tests/contract/calls.rs", &call),
    ]);
    let expected = ["crates/a/src/code.rs:4: a test that sleeps", "tests/contract/calls.rs:1: a test that sleeps"];
    assert_eq!(sleeping_tests(&tree), expected);
}
