//! Migrations come in pairs: the same steps for both databases, numbered without gaps, and all of them built in.

use std::collections::BTreeSet;

use crate::tree::Tree;

const DATABASES: [&str; 2] = ["postgres", "sqlite"];

/// Where a step is built into the binary.
const LIST: &str = "crates/store/src/migrations.rs";

fn broken_migrations(tree: &Tree) -> Vec<String> {
    let of = |database: &str| -> BTreeSet<&str> {
        let folder = format!("migrations/{database}/");
        tree.files().filter_map(|(path, _)| path.strip_prefix(&folder)).collect()
    };
    let all: BTreeSet<&str> = DATABASES.into_iter().flat_map(of).collect();
    let built_in = tree.file(LIST).unwrap_or_default();
    let mut breaches = Vec::new();
    for (number, name) in (1..).zip(&all) {
        for database in DATABASES {
            match tree.file(&format!("migrations/{database}/{name}")) {
                None => breaches.push(format!("migrations/{database}/{name}: is missing")),
                Some(text) if !text.starts_with("-- ") => {
                    breaches.push(format!("migrations/{database}/{name}: does not open with what it is for"));
                }
                Some(_) => {}
            }
        }
        if !well_named(number, name) {
            breaches.push(format!("migrations/*/{name}: step {number} is named {number:04}_verb_noun.sql"));
        }
        if !built_in.contains(&format!("{number} \"{}\"", name.trim_end_matches(".sql"))) {
            breaches.push(format!("{LIST}: does not list {name} as step {number}"));
        }
    }
    breaches
}

fn well_named(number: usize, name: &str) -> bool {
    let words = name.strip_prefix(&format!("{number:04}_")).and_then(|rest| rest.strip_suffix(".sql"));
    words
        .is_some_and(|words| words.contains('_') && words.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'))
}

#[test]
fn migrations_come_in_pairs() {
    let tree = Tree::real();
    assert_eq!(broken_migrations(&tree), Vec::<String>::new());
    assert!(tree.files().any(|(path, _)| path.starts_with("migrations/")), "there are none");
}

#[test]
fn a_lonely_a_misnamed_and_a_forgotten_migration_are_found() {
    let tree = Tree::of([
        ("migrations/postgres/0001_create_a.sql", "-- A.\n"),
        ("migrations/sqlite/0001_create_a.sql", "CREATE TABLE a;\n"),
        ("migrations/postgres/0003_b.sql", "-- B.\n"),
        (LIST, "1 \"0001_create_a\"\n"),
    ]);
    assert_eq!(
        broken_migrations(&tree),
        [
            "migrations/sqlite/0001_create_a.sql: does not open with what it is for",
            "migrations/sqlite/0003_b.sql: is missing",
            "migrations/*/0003_b.sql: step 2 is named 0002_verb_noun.sql",
            "crates/store/src/migrations.rs: does not list 0003_b.sql as step 2",
        ]
    );
}
