//! Where lists of many servers go on: one cursor that holds the cursors of those that have more.
//!
//! It carries all that is needed, so that any replica reads it (mcp.md 14.6). Whoever hands it out marks it and binds
//! it to the servers of the moment; what it says is trusted here.

use serde::{Deserialize, Serialize};

use crate::bounds::MAX_LIST_PAGES;

/// A longer cursor of a server is not handed on: its list ends there.
const MAX_CURSOR_BYTES: usize = 4 * 1024;

/// Where the list of one server goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The server.
    pub server: String,
    /// Its cursor.
    pub cursor: String,
}

/// Where the lists of all servers go on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedCursor {
    /// Pages that came before.
    pages: usize,
    /// The servers that have more, in their order.
    pub left: Vec<Left>,
}

/// A page that one server turned.
#[derive(Clone, Debug)]
pub struct Turned {
    /// The server.
    pub server: String,
    /// The cursor that it was asked with.
    pub with: Option<String>,
    /// The cursor that it answered; `None` = there is no more.
    pub next: Option<String>,
}

impl MergedCursor {
    /// Reads one back.
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Its text.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Where it goes on after this page; `None` = there is no more. A server that repeats its cursor, or never ends, is
    /// looping and is left out (architecture.md §9); each of them is named in the second value.
    pub fn after(&self, turned: Vec<Turned>) -> (Option<Self>, Vec<String>) {
        let pages = self.pages + 1;
        let (mut left, mut looping) = (Vec::new(), Vec::new());
        for Turned { server, with, next } in turned {
            match next {
                Some(cursor) if cursor.len() > MAX_CURSOR_BYTES || pages >= MAX_LIST_PAGES => looping.push(server),
                Some(cursor) if with.as_deref() == Some(&*cursor) => looping.push(server),
                Some(cursor) => left.push(Left { server, cursor }),
                None => {}
            }
        }
        ((!left.is_empty()).then_some(Self { pages, left }), looping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned(server: &str, with: Option<&str>, next: Option<&str>) -> Turned {
        Turned { server: server.to_owned(), with: with.map(str::to_owned), next: next.map(str::to_owned) }
    }

    #[test]
    fn only_servers_that_have_more_are_asked_again() {
        let first = MergedCursor::default();
        let (next, looping) =
            first.after(vec![turned("a", None, None), turned("b", None, Some("")), turned("c", None, Some("c1"))]);
        let next = next.unwrap();
        assert!(looping.is_empty());
        let left: Vec<(&str, &str)> = next.left.iter().map(|left| (&*left.server, &*left.cursor)).collect();
        assert_eq!(left, [("b", ""), ("c", "c1")]);
        assert_eq!(MergedCursor::read(&next.text()), Some(next.clone()));
        assert_eq!(next.after(vec![turned("b", Some(""), None), turned("c", Some("c1"), None)]).0, None);
    }

    #[test]
    fn a_list_that_never_ends_is_left() {
        // architecture.md §9, pages; invariant B1.
        let first = MergedCursor::default();
        let (next, looping) = first.after(vec![turned("a", Some("x"), Some("x"))]);
        assert_eq!((next, looping), (None, vec!["a".to_owned()]));
        let long = "x".repeat(MAX_CURSOR_BYTES + 1);
        assert_eq!(first.after(vec![turned("a", None, Some(&long))]).0, None);
        let last = MergedCursor { pages: MAX_LIST_PAGES - 1, left: Vec::new() };
        assert_eq!(last.after(vec![turned("a", Some("x"), Some("y"))]).0, None);
    }
}
