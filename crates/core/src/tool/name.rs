//! Visible names: what callers and models call a tool by.
//!
//! A visible name always matches `^[A-Za-z0-9_-]+$` (contract 5.2), since model APIs refuse a whole request for one
//! dot. Upstream, a tool is always called by its raw name.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

/// The visible name of each raw name of one server, in the same order.
///
/// Characters outside the charset become `_`. Where that makes two names equal, the one that needed no change keeps
/// it and every other gets a short hash of its raw name, so that a name does not depend on the order of the list.
pub(super) fn visible_names(server: &str, raw_names: &[&str], prefixed: bool) -> Vec<String> {
    let plain: Vec<String> = raw_names.iter().map(|raw| mended(&with_prefix(server, raw, prefixed))).collect();
    let mut takers: HashMap<&str, usize> = HashMap::new();
    for name in &plain {
        *takers.entry(name).or_default() += 1;
    }
    raw_names
        .iter()
        .zip(&plain)
        .map(|(raw, name)| {
            let exact = mended(raw) == **raw;
            if takers[name.as_str()] == 1 || exact { name.clone() } else { format!("{name}_{}", short_hash(raw)) }
        })
        .collect()
}

/// The visible name of a tool whose server has no other that becomes the same.
pub fn visible_name(server: &str, raw_name: &str, prefixed: bool) -> String {
    mended(&with_prefix(server, raw_name, prefixed))
}

/// Whether a tool of this visible name can come from `server`, judged before its tools are known.
pub fn could_belong_to(visible: &str, server: &str, prefixed: bool) -> bool {
    !prefixed || visible.starts_with(&mended(&with_prefix(server, "", true)))
}

fn with_prefix(server: &str, raw: &str, prefixed: bool) -> String {
    if prefixed { format!("{server}_{raw}") } else { raw.to_owned() }
}

fn mended(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

fn short_hash(raw: &str) -> String {
    Sha256::digest(raw.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_carries_its_server_unless_the_prefix_is_off() {
        // Contract 5.2, visible and raw name.
        assert_eq!(visible_names("web", &["get"], true), ["web_get"]);
        assert_eq!(visible_names("web", &["web_get"], false), ["web_get"]);
        assert_eq!(visible_names("web", &["web_get"], true), ["web_web_get"]);
    }

    #[test]
    fn odd_characters_are_mended_and_clashes_get_a_stable_hash() {
        let names = visible_names("s", &["a.b", "a_b", "a/b", "über", "工具"], true);
        assert_eq!(names[1], "s_a_b");
        assert_eq!(names[3], "s__ber");
        assert_eq!(names[4], "s___");
        assert!(names[0].starts_with("s_a_b_") && names[2].starts_with("s_a_b_") && names[0] != names[2]);
        let mut reordered = visible_names("s", &["a/b", "a_b", "a.b"], true);
        reordered.reverse();
        assert_eq!(reordered, names[..3]);
    }

    #[test]
    fn every_name_of_a_server_is_shown_once_and_within_the_charset() {
        // Contract 5.2, charset: odd names are mended instead of dropped.
        let raw = ["a.b", "a_b", "a/b", "a b", "über", "工具", "A_B", "a__b", "_", "-x", "🙂"];
        let mut names = visible_names("s", &raw, false);
        assert!(names.iter().all(|n| n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), raw.len());
    }

    #[test]
    fn a_server_whose_name_begins_with_anothers_is_told_apart_by_who_lists_the_tool() {
        // Contract 5.2, producing server.
        assert!(could_belong_to("web_scraper_get", "web", true));
        assert!(could_belong_to("web_scraper_get", "web_scraper", true));
        assert!(!could_belong_to("web_get", "web_scraper", true));
        assert!(could_belong_to("anything", "web", false));
    }
}
