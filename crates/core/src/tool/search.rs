//! `tool_search`: finds tools by exact names, by a word of the name, or by a pattern (contract 9.4).
//!
//! Owns the forms of a query and the order of what it finds. Patterns run in linear time over a bounded text each, so
//! that no query and no description makes a search slow (invariant B1).

use std::cmp::Reverse;

use regex::{Regex, RegexBuilder};
use serde_json::value::RawValue;

use crate::bounds::{MAX_PATTERN_BYTES, MAX_SEARCHED_BYTES};
use crate::raw::{self, Members};

/// The most tools that a query finds unless it names them.
const MOST_FOUND: usize = 5;

/// A tool as a search sees it.
struct Searched<'t> {
    /// Place in the catalogue.
    at: usize,
    name: &'t str,
    /// Name and description.
    text: String,
}

/// The places of those tools that `query` finds, best first. `tools` are visible names with their `Tool` objects, in
/// the order of the catalogue, which also breaks ties.
pub fn search<'t>(query: &str, tools: impl IntoIterator<Item = (&'t str, &'t RawValue)>) -> Vec<usize> {
    let query = query.trim();
    if query.is_empty() {
        return Vec::new();
    }
    let tools = tools.into_iter().enumerate();
    if let Some(names) = query.strip_prefix("select:") {
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        return tools.filter(|(_, (name, _))| names.contains(name)).map(|(at, _)| at).collect();
    }
    let tools = tools.map(|(at, (name, tool))| Searched { at, name, text: text(name, tool) });
    match query.strip_prefix('+') {
        Some(query) => with_word(query, tools),
        None => by_pattern(query, tools),
    }
}

/// `+word rest`: those with `word` in their name, the more often `rest` matches the better.
fn with_word<'t>(query: &str, tools: impl Iterator<Item = Searched<'t>>) -> Vec<usize> {
    let (word, rest) = query.split_once(char::is_whitespace).unwrap_or((query, ""));
    if word.is_empty() {
        return Vec::new();
    }
    let word = word.to_lowercase();
    let rest = rest.trim();
    let pattern = if rest.is_empty() { None } else { pattern(rest) };
    let matches = |tool: &Searched<'_>| pattern.as_ref().map_or(0, |pattern| pattern.find_iter(&tool.text).count());
    let named = tools.filter(|tool| tool.name.to_lowercase().contains(&word));
    best(named.map(|tool| (matches(&tool), tool.at)))
}

/// Anything else: those whose name or description matches, a name before a description.
fn by_pattern<'t>(query: &str, tools: impl Iterator<Item = Searched<'t>>) -> Vec<usize> {
    let Some(pattern) = pattern(query) else { return Vec::new() };
    let found = tools.filter(|tool| pattern.is_match(&tool.text));
    best(found.map(|tool| (usize::from(pattern.is_match(tool.name)), tool.at)))
}

fn best(ranked: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_by_key(|(rank, _)| Reverse(*rank));
    ranked.into_iter().take(MOST_FOUND).map(|(_, at)| at).collect()
}

/// The query as a pattern, or as the text itself when it is none: what does not compile, or only into too much.
fn pattern(query: &str) -> Option<Regex> {
    let compiled =
        |pattern: &str| RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_PATTERN_BYTES).build().ok();
    compiled(query).or_else(|| compiled(&regex::escape(query)))
}

fn text(name: &str, tool: &RawValue) -> String {
    let members = Members::of(tool);
    let description = members.as_ref().and_then(|members| members.get("description")).and_then(raw::text);
    let mut text = format!("{name} {}", description.unwrap_or_default());
    text.truncate(text.floor_char_boundary(MAX_SEARCHED_BYTES));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: [(&str, &str); 8] = [
        ("db_query", "Runs SQL"),
        ("db_list", "Lists tables; a table has rows, a Table has columns"),
        ("web_search", "Searches the web for a query"),
        ("mail_send", "Sends mail (SMTP)"),
        ("mail_list", "Lists mail"),
        ("file_list", "Lists files"),
        ("user_list", "Lists users"),
        ("a.b", "Übersetzt"),
    ];

    fn found(query: &str) -> Vec<&'static str> {
        let tools = TOOLS.map(|(name, description)| {
            let tool = serde_json::json!({ "description": description, "inputSchema": {} });
            (name, serde_json::value::to_raw_value(&tool).unwrap())
        });
        let found = search(query, tools.iter().map(|(name, tool)| (*name, &**tool)));
        found.into_iter().map(|at| TOOLS[at].0).collect()
    }

    #[test]
    fn every_form_of_a_query_finds_what_it_should() {
        // Contract 9.4, a row each.
        let none: [&str; 0] = [];
        for (query, expected) in [
            ("", &none[..]),
            (" \t ", &none),
            ("select:web_search,db_query", &["db_query", "web_search"]),
            ("select: mail_send , nothing,mail_send", &["mail_send"]),
            ("select:", &none),
            ("select:DB_QUERY", &none),
            ("+", &none),
            ("+ list", &none),
            ("+MAIL", &["mail_send", "mail_list"]),
            ("+db table", &["db_list", "db_query"]),
            ("+db (", &["db_query", "db_list"]),
            ("+nothing table", &none),
            ("^web", &["web_search"]),
            ("QUERY", &["db_query", "web_search"]),
            ("smtp|sql", &["db_query", "mail_send"]),
            ("übersetzt", &["a.b"]),
            ("(SMTP", &["mail_send"]),
            ("(", &["mail_send"]),
            ("nothing at all", &none),
        ] {
            assert_eq!(found(query), expected, "{query:?}");
        }
    }

    #[test]
    fn only_a_selection_finds_more_than_five() {
        // Contract 9.4: `select:` is uncapped.
        let names: Vec<&str> = TOOLS.iter().map(|(name, _)| *name).collect();
        assert_eq!(found(&format!("select:{}", names.join(","))), names);
        assert_eq!(found("."), names[..5]);
        assert_eq!(found("+_"), names[..5]);
    }

    #[test]
    fn a_name_ranks_above_a_description_and_the_catalogue_breaks_ties() {
        // Contract 9.4, other.
        assert_eq!(found("list"), ["db_list", "mail_list", "file_list", "user_list"]);
        assert_eq!(found("mail|sends|tables"), ["mail_send", "mail_list", "db_list"]);
    }

    #[test]
    fn a_pattern_too_large_to_compile_is_taken_as_text_and_a_tool_without_description_is_found() {
        // Invariant B1.
        assert!(found(r"(\w{1000}){1000}").is_empty());
        let bare = [RawValue::from_string("{}".to_owned()).unwrap(), RawValue::from_string("7".to_owned()).unwrap()];
        assert_eq!(search("t", bare.iter().map(|tool| ("tool", &**tool))), [0, 1]);
    }
}
