//! How long a file and a function may be.

use crate::tree::{Tree, is_test_file};

/// Lines of a file.
const FILE: usize = 400;

/// Lines of a file of tests.
const TEST_FILE: usize = 600;

/// Lines of a function, from `fn` to its closing brace.
const FUNCTION: usize = 70;

fn too_long(tree: &Tree) -> Vec<String> {
    let mut breaches = Vec::new();
    for (path, text) in tree.rust() {
        let most = if is_test_file(path) { TEST_FILE } else { FILE };
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > most {
            breaches.push(format!("{path}: {} lines, at most {most}", lines.len()));
        }
        for (at, length) in functions(&lines).filter(|(_, length)| *length > FUNCTION) {
            breaches.push(format!("{path}:{}: a function of {length} lines, at most {FUNCTION}", at + 1));
        }
    }
    breaches
}

/// Where each function begins and how many lines it has. Leans on rustfmt: a function ends with the first brace that
/// stands as far to the left as its `fn`.
fn functions<'l>(lines: &'l [&str]) -> impl Iterator<Item = (usize, usize)> + 'l {
    lines.iter().enumerate().filter(|(_, line)| opens_function(line)).filter_map(|(at, line)| {
        let indent = line.len() - line.trim_start().len();
        let end = format!("{}}}", &line[..indent]);
        let body = lines[at..].iter().position(|line| line.ends_with('{') || line.ends_with(['}', ';']))?;
        if !lines[at + body].ends_with('{') {
            return Some((at, body + 1));
        }
        let length = lines[at..].iter().position(|line| **line == end)?;
        Some((at, length + 1))
    })
}

fn opens_function(line: &str) -> bool {
    let qualifier = |word: &&str| matches!(*word, "async" | "const" | "extern") || word.starts_with("pub");
    line.split_whitespace().find(|word| !qualifier(word)) == Some("fn")
}

#[test]
fn no_file_and_no_function_is_too_long() {
    assert_eq!(too_long(&Tree::real()), Vec::<String>::new());
}

#[test]
fn a_long_file_and_a_long_function_are_found() {
    let function = format!(
        "impl X {{\n    pub(crate) async fn long(\n        a: u8,\n    ) {{\n{}    }}\n}}\n",
        "        a();\n".repeat(68)
    );
    let fits = format!("fn fits() {{\n{}}}\nfn next() {{}}\n", "    a();\n".repeat(68));
    let tree = Tree::of([
        ("crates/a/src/f.rs", &function),
        ("crates/a/src/g.rs", &fits),
        ("tests/x.rs", &"\n".repeat(600)),
        ("crates/a/src/h.rs", &"\n".repeat(401)),
    ]);
    assert_eq!(
        too_long(&tree),
        ["crates/a/src/f.rs:2: a function of 72 lines, at most 70", "crates/a/src/h.rs: 401 lines, at most 400"]
    );
}
