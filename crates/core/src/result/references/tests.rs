//! Every rule of free text and links, without a file system: the closure knows which files there are.

use std::cell::RefCell;

use proptest::prelude::*;

use super::*;

/// The working directory of the server, which is the workspace.
const WORKSPACE: &str = "/d/t/user-data/workspace";

/// Knows `page.yml`, `out/report.md`, `my notes/a b.md` in the workspace, and `o.csv` in the outputs beside it.
fn visible(path: &Path) -> Option<String> {
    let path = path.to_str()?.replace("/./", "/").replace("/workspace/../", "/");
    let inside = path.strip_prefix("/d/t/user-data/")?;
    let known = ["workspace/page.yml", "workspace/out/report.md", "workspace/my notes/a b.md", "outputs/o.csv"];
    known.contains(&inside).then(|| format!("/mnt/user-data/{inside}"))
}

/// A file below the workspace that the call changed.
fn changed(relative: &str) -> ChangedFile {
    ChangedFile {
        host: vec![Path::new(WORKSPACE).join(relative)],
        relative: Some(relative.into()),
        visible: format!("/mnt/user-data/workspace/{relative}"),
    }
}

fn rewritten(text: &str, changes: &[&str]) -> String {
    let changes: Vec<ChangedFile> = changes.iter().map(|relative| changed(relative)).collect();
    let base = Path::new(WORKSPACE);
    References::new(Some(base), &changes, &visible).in_text(text).unwrap_or_else(|| text.to_owned())
}

fn assert_rewritten(changes: &[&str], rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        let expected = expected.replace('@', "/mnt/user-data/workspace");
        assert_eq!(rewritten(text, changes), expected, "{text}");
    }
}

fn assert_untouched(changes: &[&str], texts: &[&str]) {
    for text in texts {
        assert_eq!(&rewritten(text, changes), text);
    }
}

#[test]
fn paths_of_existing_files_are_rewritten_and_the_punctuation_around_them_stays() {
    // Contract 4.7.
    assert_rewritten(
        &[],
        &[
            ("Saved to /d/t/user-data/workspace/page.yml.", "Saved to @/page.yml."),
            ("file:///d/t/user-data/workspace/page.yml", "@/page.yml"),
            ("- [Snapshot](./page.yml)", "- [Snapshot](@/page.yml)"),
            ("See out/report.md, please", "See @/out/report.md, please"),
            ("../outputs/o.csv!", "/mnt/user-data/outputs/o.csv!"),
            (r#"{"a":"/d/t/user-data/workspace/page.yml"}"#, r#"{"a":"@/page.yml"}"#),
            ("`./page.yml` and './page.yml'", "`@/page.yml` and '@/page.yml'"),
            ("file:///d/t/user-data/workspace/my%20notes/a%20b.md", "@/my notes/a b.md"),
        ],
    );
}

#[test]
fn what_leads_to_no_file_of_the_thread_is_untouched() {
    // Contract 4.7.
    let long = format!("/d/t/user-data/workspace/{}", "x".repeat(100_000));
    assert_untouched(
        &[],
        &[
            "/tmp/page.yml",
            "/d/t/user-data/workspace/missing.md",
            "./missing and and/or",
            "https://example.org/d/t/user-data/workspace/page.yml",
            "https:///d/t/user-data/workspace/page.yml",
            "/backup/d/t/user-data/workspace/page.yml",
            "~/d/t/user-data/workspace/page.yml",
            r"C:\out\out/report.md",
            "file:out/report.md file:// file://[::1/d",
            "page.yml",
            "my notes/a b.md",
            &long,
            "",
        ],
    );
}

#[test]
fn a_relative_path_needs_the_servers_directory() {
    // Contract 4.7.
    let mut references = References::new(None, &[], &visible);
    assert_eq!(references.in_text("./page.yml out/report.md"), None);
    assert_eq!(
        references.in_text("/d/t/user-data/workspace/page.yml").as_deref(),
        Some("/mnt/user-data/workspace/page.yml")
    );
}

#[test]
fn a_repeated_token_is_looked_up_once_and_replaced_everywhere() {
    // Contract 4.7.
    let asked = RefCell::new(0);
    let count = |path: &Path| {
        *asked.borrow_mut() += 1;
        visible(path)
    };
    let mut references = References::new(Some(Path::new(WORKSPACE)), &[], &count);
    let text = references.in_text("./page.yml, ./page.yml and (./page.yml)").unwrap();
    assert_eq!(text.matches("/mnt/user-data/workspace/page.yml").count(), 3);
    assert_eq!(references.of_link("./page.yml").as_deref(), Some("/mnt/user-data/workspace/page.yml"));
    assert_eq!(*asked.borrow(), 1);
}

#[test]
fn a_bare_name_stands_for_the_one_file_this_call_changed() {
    // Contract 4.7.
    assert_rewritten(
        &["out/page.yml"],
        &[
            ("page.yml", "@/out/page.yml"),
            ("Wrote page.yml.", "Wrote @/out/page.yml."),
            ("[page.yml](x), 'page.yml': \"page.yml\"", "[@/out/page.yml](x), '@/out/page.yml': \"@/out/page.yml\""),
            ("page.yml page.yml", "@/out/page.yml @/out/page.yml"),
        ],
    );
    assert_rewritten(&["a/$1\\0.md"], &[(r"$1\0.md", r"@/a/$1\0.md")]);
}

#[test]
fn a_bare_name_inside_a_longer_word_or_path_is_untouched() {
    // Contract 4.7.
    assert_untouched(
        &["page.yml"],
        &[
            "page.yml.bak",
            "page.yml_",
            "page.ymlx",
            "page.yml-old",
            "mypage.yml",
            "my-page.yml",
            "my.page.yml",
            "../page.yml",
            "page.yml/inner",
            r"page.yml\inner",
            r"C:\dir\page.yml",
            "Page.yml PAGE.YML",
            "étpage.yml",
            "https://example.org/?file=page.yml",
        ],
    );
}

#[test]
fn a_bare_name_is_untouched_unless_it_is_the_only_one() {
    // Contract 4.7.
    assert_untouched(&["a/page.yml", "b/page.yml"], &["page.yml"]);
    assert_untouched(&[], &["page.yml"]);
    let many: Vec<String> = (0..=MAX_CHANGED).map(|n| format!("f{n}.md")).collect();
    assert_untouched(&many.iter().map(String::as_str).collect::<Vec<_>>(), &["f1.md"]);
}

#[test]
fn the_longest_name_wins() {
    // Contract 4.7.
    assert_rewritten(
        &["report.md", "final report.md"],
        &[("final report.md and report.md", "@/final report.md and @/report.md")],
    );
}

#[test]
fn changed_files_are_found_by_paths_with_blanks() {
    // Contract 4.7.
    assert_rewritten(
        &["my notes/a b.md"],
        &[
            ("Saved /d/t/user-data/workspace/my notes/a b.md.", "Saved @/my notes/a b.md."),
            ("file:///d/t/user-data/workspace/my notes/a b.md", "@/my notes/a b.md"),
            ("my notes/a b.md, ./my notes/a b.md", "@/my notes/a b.md, @/my notes/a b.md"),
            ("a b.md", "@/my notes/a b.md"),
        ],
    );
    assert_untouched(&["my notes/a b.md"], &["in my notes/a b.md.bak", "x/my notes/a b.md", "my notes/a  b.md"]);
    assert_untouched(&["x/a b.md", "y/a b.md"], &["a b.md"]);
    assert_rewritten(&["x/a b.md", "y/a b.md"], &[("x/a b.md", "@/x/a b.md")]);
}

#[test]
fn a_link_is_rewritten_only_when_it_leads_to_a_file_of_the_thread() {
    // Contract 4.7.
    let mut references = References::new(Some(Path::new(WORKSPACE)), &[], &visible);
    for (link, expected) in [
        ("file:///d/t/user-data/workspace/page.yml", Some("/mnt/user-data/workspace/page.yml")),
        ("page.yml", Some("/mnt/user-data/workspace/page.yml")),
        ("file:///etc/passwd", None),
        ("https://example.org/page.yml", None),
    ] {
        assert_eq!(references.of_link(link).as_deref(), expected, "{link}");
    }
}

#[test]
fn lookups_and_searched_text_are_bounded() {
    // Invariant B1.
    let mut references = References::new(None, &[], &visible);
    let many: String = (0..MAX_LOOKUPS).map(|n| format!("/x{n} ")).collect();
    assert_eq!(references.in_text(&many), None);
    assert_eq!(references.in_text("/d/t/user-data/workspace/page.yml"), None);
    let long = format!("{} /d/t/user-data/workspace/page.yml", " ".repeat(MAX_TEXT_BYTES));
    assert_eq!(References::new(None, &[], &visible).in_text(&long), None);
}

proptest! {
    #[test]
    fn text_without_references_is_unchanged(text in "(\\PC|[ \n/.:\\\\~'\"()-]|file:///|a/b|https://|page.yml){0,40}") {
        let nothing = |_: &Path| None;
        prop_assert_eq!(References::new(Some(Path::new("/w")), &[], &nothing).in_text(&text), None);
    }

    #[test]
    fn only_references_change(before in "[a-z ,;é]{0,10}", after in "[a-z ,;é]{0,10}") {
        let text = format!("{before} ./page.yml {after}");
        let expected = format!("{before} /mnt/user-data/workspace/page.yml {after}");
        prop_assert_eq!(rewritten(&text, &[]), expected);
    }
}
