//! All tools of one server, page by page.
//!
//! Owns the guards of architecture.md §9: a cursor that came before, too many pages or too many tools end the listing
//! with a warning, and what was found is served, each tool once. Reads nothing of a tool: each is passed on byte for
//! byte (invariant W1).

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use caribou_core::bounds::{MAX_LIST_PAGES, MAX_TOOLS_PER_SERVER};
use caribou_ports::mcp::{CallError, ToolListing};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::channel::{Channel, RequestExtras};
use crate::wire::meta::{self, Member, Meta};

/// One answer to `tools/list`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Box<RawValue>>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// Lists all tools; `meta` goes with every request.
///
/// # Errors
/// A page could not be fetched or is no list.
pub(crate) async fn list_tools(channel: &dyn Channel, meta: Meta<'_>) -> Result<ToolListing, CallError> {
    let mut found = Found::default();
    let mut cursor = None;
    for _ in 0..MAX_LIST_PAGES {
        let page = fetch(channel, meta, cursor.as_deref()).await?;
        match found.add(page) {
            Next::Page(next) => cursor = Some(next),
            Next::Done => return Ok(found.into_listing(channel, None)),
            Next::Stop(why) => return Ok(found.into_listing(channel, Some(why))),
        }
    }
    let why = format!("`tools/list` has more than {MAX_LIST_PAGES} pages; stopped there");
    Ok(found.into_listing(channel, Some(why)))
}

async fn fetch(channel: &dyn Channel, meta: Meta<'_>, cursor: Option<&str>) -> Result<Page, CallError> {
    let cursor = cursor.map(|cursor| ("cursor", Member::Text(cursor)));
    let params = meta::params(cursor.as_slice(), meta)?;
    let result = channel.request("tools/list", Some(params), RequestExtras::default()).await?;
    serde_json::from_str(result.get())
        .map_err(|_| CallError::Malformed("the answer to `tools/list` is no list of tools".to_owned()))
}

/// What was found so far.
#[derive(Default)]
struct Found {
    tools: Vec<Arc<RawValue>>,
    /// Digests of the tools found, so that a page that comes again adds nothing.
    seen: HashSet<u64>,
    /// How many came again.
    repeated: usize,
    cursors: HashSet<String>,
    hasher: RandomState,
}

/// What to do after a page.
enum Next {
    Page(String),
    Done,
    Stop(String),
}

impl Found {
    fn add(&mut self, page: Page) -> Next {
        for tool in page.tools {
            if self.tools.len() == MAX_TOOLS_PER_SERVER {
                return Next::Stop(format!(
                    "`tools/list` has more than {MAX_TOOLS_PER_SERVER} tools; the rest is left out"
                ));
            }
            if self.seen.insert(self.hasher.hash_one(tool.get())) {
                self.tools.push(Arc::from(tool));
            } else {
                self.repeated += 1;
            }
        }
        match page.next_cursor {
            None => Next::Done,
            Some(cursor) if self.cursors.insert(cursor.clone()) => Next::Page(cursor),
            Some(_) => Next::Stop("`tools/list` repeats a cursor; stopped there".to_owned()),
        }
    }

    fn into_listing(self, channel: &dyn Channel, stopped: Option<String>) -> ToolListing {
        // Where the listing was stopped, that is what explains a repetition.
        let repeated = (self.repeated > 0)
            .then(|| format!("`tools/list` repeats {} of its tools; each is shown once", self.repeated));
        let mut listing = ToolListing { tools: self.tools, warnings: stopped.or(repeated).into_iter().collect() };
        channel.inspect(&mut listing);
        listing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Says, Scripted};

    async fn listed(pages: impl IntoIterator<Item = &'static str>) -> (Arc<Scripted>, Result<ToolListing, CallError>) {
        let channel = Scripted::new(pages.into_iter().map(Says::Result));
        let listing = list_tools(channel.as_ref(), Meta::default()).await;
        (channel, listing)
    }

    #[tokio::test]
    async fn pages_are_joined_and_an_empty_cursor_is_passed_on_once() {
        let (channel, listing) = listed([
            r#"{"tools":[{"name":"b","x":1.0}],"nextCursor":""}"#,
            r#"{"tools":[{"name":"a"}],"nextCursor":null}"#,
        ])
        .await;
        let listing = listing.expect("listed");
        let tools: Vec<&str> = listing.tools.iter().map(|tool| tool.get()).collect();
        assert_eq!(tools, [r#"{"name":"b","x":1.0}"#, r#"{"name":"a"}"#]);
        assert!(listing.warnings.is_empty());
        assert_eq!(channel.seen.lock().unwrap()[1].1, r#"{"cursor":""}"#);
    }

    #[tokio::test]
    async fn a_repeated_cursor_ends_the_list_with_each_tool_once() {
        let page = r#"{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"c1"}"#;
        let (channel, listing) = listed([page; 2]).await;
        let listing = listing.expect("listed");
        assert_eq!((listing.tools.len(), listing.warnings.len()), (2, 1));
        assert_eq!(channel.methods().len(), 2);
    }

    #[tokio::test]
    async fn a_tool_that_comes_twice_is_listed_once_with_a_warning() {
        let (_, listing) = listed([r#"{"tools":[{"name":"a"},{"name":"b"},{"name":"a"}]}"#]).await;
        let listing = listing.expect("listed");
        assert_eq!((listing.tools.len(), listing.warnings.len()), (2, 1));
        assert!(listing.warnings[0].contains("repeats 1 of its tools"), "{:?}", listing.warnings);
    }

    #[tokio::test]
    async fn ever_new_cursors_end_at_the_bound() {
        let pages = (0..MAX_LIST_PAGES).map(|page| &*format!(r#"{{"tools":[],"nextCursor":"c{page}"}}"#).leak());
        let (channel, listing) = listed(pages).await;
        assert_eq!(listing.expect("listed").warnings.len(), 1);
        assert_eq!(channel.methods().len(), MAX_LIST_PAGES);
    }

    #[tokio::test]
    async fn ever_new_tools_end_at_the_bound() {
        let tools: Vec<String> = (0..=MAX_TOOLS_PER_SERVER).map(|tool| format!(r#"{{"name":"t{tool}"}}"#)).collect();
        let (_, listing) = listed([&*format!(r#"{{"tools":[{}]}}"#, tools.join(",")).leak()]).await;
        let listing = listing.expect("listed");
        assert_eq!((listing.tools.len(), listing.warnings.len()), (MAX_TOOLS_PER_SERVER, 1));
    }

    #[tokio::test]
    async fn an_answer_that_is_no_list_is_an_error() {
        for answer in ["{}", "null", r#"{"tools":null}"#] {
            assert!(matches!(listed([answer]).await.1, Err(CallError::Malformed(_))), "{answer}");
        }
    }
}
