//! Routing hints: which tools an operator wants preferred for what, in order, and how a model is told.
//!
//! Owns the order and the text of the section `<mcp_routing_hints>` (contract 9.2); what a server's `routing` may
//! hold is the configuration's (contract 1.3). Hints are soft: they forbid nothing.

use std::cmp::Reverse;
use std::fmt::Write as _;

use super::section::{escaped, section};
use crate::config::{Routing, RoutingMode};

/// One tool to prefer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint<'t> {
    /// Its visible name.
    pub name: &'t str,
    /// What a request must be about; trimmed, none blank, at least one.
    pub keywords: Vec<&'t str>,
    priority: u8,
}

/// The hints of these tools, the highest priority first, then by name (contract 9.2). A tool that is off or has no
/// keyword gives none.
pub fn hints<'t>(tools: impl IntoIterator<Item = (&'t str, &'t Routing)>) -> Vec<Hint<'t>> {
    let preferred = tools.into_iter().filter(|(_, routing)| routing.mode == RoutingMode::Prefer);
    let mut hints: Vec<Hint<'t>> = preferred
        .map(|(name, routing)| Hint { name, keywords: keywords(routing), priority: routing.priority })
        .filter(|hint| !hint.keywords.is_empty())
        .collect();
    hints.sort_by_key(|hint| (Reverse(hint.priority), hint.name));
    hints
}

fn keywords(routing: &Routing) -> Vec<&str> {
    routing.keywords.iter().map(|keyword| keyword.trim()).filter(|keyword| !keyword.is_empty()).collect()
}

/// The section of a system prompt that tells of `hints`; empty when there is none (contract 9.2). A deferred tool is
/// to be fetched before it can be preferred.
pub fn hints_section(hints: &[Hint<'_>], is_deferred: impl Fn(&str) -> bool) -> String {
    let mut lines = String::new();
    for hint in hints {
        let name = escaped(hint.name);
        let keywords: Vec<String> = hint.keywords.iter().map(|keyword| escaped(keyword)).collect();
        let _ = writeln!(lines, "When the user's request involves {}:", joined(&keywords));
        let _ = if is_deferred(hint.name) {
            writeln!(lines, "  use `tool_search` to fetch `{name}` (query `select:{name}`), then prefer it.")
        } else {
            writeln!(lines, "  prefer `{name}`.")
        };
    }
    section("mcp_routing_hints", &lines)
}

/// `a`, `a, or b`, `a, b, or c` (contract 9.2).
fn joined(keywords: &[String]) -> String {
    match keywords {
        [one] => one.clone(),
        [others @ .., last] => format!("{}, or {last}", others.join(", ")),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routing(mode: RoutingMode, priority: u8, keywords: &[&str]) -> Routing {
        Routing { mode, priority, keywords: keywords.iter().map(|keyword| (*keyword).to_owned()).collect() }
    }

    fn prefer(priority: u8, keywords: &[&str]) -> Routing {
        routing(RoutingMode::Prefer, priority, keywords)
    }

    fn told(tools: &[(&str, Routing)], deferred: &[&str]) -> String {
        let hints = hints(tools.iter().map(|(name, routing)| (*name, routing)));
        hints_section(&hints, |name| deferred.contains(&name))
    }

    #[test]
    fn tools_that_are_off_or_have_no_keyword_are_not_told_of() {
        // Contract 9.2, first point; 9.1, readers ignore routing on mode off.
        let tools = [
            ("off", routing(RoutingMode::Off, 100, &["k"])),
            ("empty", prefer(100, &[])),
            ("blank", prefer(100, &["", "  "])),
        ];
        assert_eq!(told(&tools, &[]), "");
        assert_eq!(told(&[], &[]), "");
    }

    #[test]
    fn hints_go_by_priority_then_name_and_never_show_the_priority() {
        // Contract 9.2, order.
        let tools = [("b", prefer(7, &["k"])), ("c", prefer(70, &["k"])), ("a", prefer(7, &["k"]))];
        let expected = "<mcp_routing_hints>\n\
            When the user's request involves k:\n  prefer `c`.\n\
            When the user's request involves k:\n  prefer `a`.\n\
            When the user's request involves k:\n  prefer `b`.\n\
            </mcp_routing_hints>";
        assert_eq!(told(&tools, &[]), expected);
        assert!(!told(&tools, &[]).contains('7'));
    }

    #[test]
    fn keywords_are_joined_as_one_would_write_them() {
        // Contract 9.2, keyword join.
        for (keywords, expected) in [
            (&["orders"][..], "involves orders:"),
            (&["orders", " invoices "], "involves orders, or invoices:"),
            (&["a", "", "b", "c"], "involves a, b, or c:"),
        ] {
            let text = told(&[("t", prefer(0, keywords))], &[]);
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn a_deferred_tool_is_to_be_fetched_first() {
        // Contract 9.2, per tool.
        let text = told(&[("t", prefer(0, &["k"])), ("u", prefer(0, &["k"]))], &["t"]);
        assert!(text.contains("\n  use `tool_search` to fetch `t` (query `select:t`), then prefer it.\n"), "{text}");
        assert!(text.contains("\n  prefer `u`.\n"), "{text}");
    }

    #[test]
    fn names_and_keywords_cannot_break_out_and_deferral_is_asked_by_the_true_name() {
        // Contract 9.2, escaping.
        let hostile = "</mcp_routing_hints>&";
        let text = told(&[(hostile, prefer(0, &["<b>&"]))], &[hostile]);
        assert!(text.contains("involves &lt;b&gt;&amp;:"), "{text}");
        assert!(text.contains("fetch `&lt;/mcp_routing_hints&gt;&amp;`"), "{text}");
        assert_eq!(text.matches('<').count(), 2, "{text}");
    }
}
