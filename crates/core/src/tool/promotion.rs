//! Promoted tools: deferred ones that a thread has fetched, by a search or because its user spoke of them.
//!
//! Owns what a promotion is, how two become one, and which tools a user's text promotes (contract 9.3, 9.5). Which
//! message of a conversation is the latest real one is the agent's to know; where promotions are kept is a store's.

use std::collections::HashSet;
use std::sync::Arc;

use crate::bounds::MAX_PROMOTION_TEXT_BYTES;
use crate::ids::CatalogHash;

use super::routing::Hint;

/// How many tools one text promotes when nothing else is said (contract 9.3).
pub const AUTO_PROMOTE_TOP_K: usize = 3;

/// The most tools that one text may promote (contract 9.5).
const MOST_PER_TEXT: usize = 5;

/// What a thread has promoted, and in which catalogue. It counts in no other (contract 9.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// The catalogue.
    pub catalog: CatalogHash,
    /// Visible names, each once, in the order they were promoted.
    pub names: Vec<Arc<str>>,
}

impl Promotion {
    /// What a thread that stood at `before` has promoted after this one: both in order when they are of one
    /// catalogue, else this one alone (contract 9.3).
    #[must_use]
    pub fn after(self, before: Option<Self>) -> Self {
        let earlier = before.filter(|before| before.catalog == self.catalog).map(|before| before.names);
        let mut seen = HashSet::new();
        let names = earlier.into_iter().flatten().chain(self.names).filter(|name| seen.insert(name.clone())).collect();
        Self { catalog: self.catalog, names }
    }
}

/// How many tools one text promotes when `asked` for in the settings: 1 to 5, clamped in silence (contract 9.3).
pub fn auto_promote_top_k(asked: i64) -> usize {
    usize::try_from(asked).unwrap_or(0).clamp(1, MOST_PER_TEXT)
}

/// The names of the first `top_k` hints, in their order, that have a keyword in `text`, the original text of the
/// user's latest message (contract 9.5).
///
/// A keyword matches anywhere, also within a word, and in any case. Of a text beyond [`MAX_PROMOTION_TEXT_BYTES`]
/// only the beginning is looked at.
pub fn matching<'t>(text: &str, hints: &[Hint<'t>], top_k: usize) -> Vec<&'t str> {
    let text = folded(&text[..text.floor_char_boundary(MAX_PROMOTION_TEXT_BYTES)]);
    let spoken_of = |hint: &&Hint<'_>| hint.keywords.iter().any(|keyword| text.contains(&folded(keyword)));
    hints.iter().filter(spoken_of).take(top_k).map(|hint| hint.name).collect()
}

/// `text` without its case. Letter by letter and through capitals, so that `ß` equals `ss` and both small sigmas are
/// one, as Unicode folds them.
fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Routing, RoutingMode};
    use crate::tool::hints;

    fn promotion(catalog: &str, names: &[&str]) -> Promotion {
        Promotion { catalog: catalog.into(), names: names.iter().map(|name| Arc::from(*name)).collect() }
    }

    #[test]
    fn promotions_of_one_catalogue_are_united_in_order_and_those_of_another_are_replaced() {
        // Contract 9.3, promotion state.
        for (before, now, after) in [
            (None, promotion("h", &["b", "a"]), promotion("h", &["b", "a"])),
            (Some(promotion("h", &["b"])), promotion("h", &["a", "b", "c", "a"]), promotion("h", &["b", "a", "c"])),
            (Some(promotion("old", &["b", "z"])), promotion("h", &["a"]), promotion("h", &["a"])),
        ] {
            assert_eq!(now.after(before), after);
        }
    }

    #[test]
    fn the_number_of_tools_a_text_promotes_is_clamped() {
        // Contract 9.3, switch.
        for (asked, taken) in [(i64::MIN, 1), (-1, 1), (0, 1), (1, 1), (3, 3), (5, 5), (6, 5), (i64::MAX, 5)] {
            assert_eq!(auto_promote_top_k(asked), taken, "{asked}");
        }
    }

    fn promoted(text: &str, tools: &[(&str, u8, &[&str])], top_k: usize) -> Vec<String> {
        let routings: Vec<Routing> = tools
            .iter()
            .map(|(_, priority, keywords)| Routing {
                mode: RoutingMode::Prefer,
                priority: *priority,
                keywords: keywords.iter().map(|keyword| (*keyword).to_owned()).collect(),
            })
            .collect();
        let hints = hints(tools.iter().zip(&routings).map(|((name, ..), routing)| (*name, routing)));
        matching(text, &hints, top_k).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_keyword_matches_anywhere_in_any_case_and_script() {
        // Contract 9.5, point 3.
        for (text, keyword) in [
            ("show the ORDERS of today", "orders"),
            ("a rapid answer", "api"),
            ("请查一下订单状态", "订单"),
            ("in der STRASSE", "straße"),
            ("ΟΔΟΣ", "οδος"),
            ("two  words", "  two  words "),
        ] {
            assert_eq!(promoted(text, &[("t", 0, &["nothing", keyword])], 3), ["t"], "{text}");
        }
        assert!(promoted("orders", &[("t", 0, &["invoices"])], 3).is_empty());
        assert!(promoted("", &[("t", 0, &["orders"])], 3).is_empty());
    }

    #[test]
    fn a_blank_keyword_matches_nothing() {
        // Contract 9.5, point 1.
        assert!(promoted("any text at all", &[("t", 9, &["", " \t"])], 3).is_empty());
    }

    #[test]
    fn the_highest_priorities_win_and_names_break_ties() {
        // Contract 9.5, point 4.
        let tools: &[(&str, u8, &[&str])] =
            &[("c", 5, &["k"]), ("b", 5, &["k"]), ("a", 1, &["k"]), ("z", 90, &["k"]), ("other", 100, &["x"])];
        assert_eq!(promoted("k", tools, 3), ["z", "b", "c"]);
        assert_eq!(promoted("k", tools, 5), ["z", "b", "c", "a"]);
    }

    #[test]
    fn only_the_beginning_of_an_endless_text_is_looked_at() {
        let long = "é".repeat(MAX_PROMOTION_TEXT_BYTES);
        assert!(promoted(&format!("{long} orders"), &[("t", 0, &["orders"])], 3).is_empty());
        assert_eq!(promoted(&format!("orders {long}"), &[("t", 0, &["orders"])], 3), ["t"]);
    }
}
