//! Which parts of a text are references to files of the thread, and what they are called in the agent's tree
//! (contract 4.7).
//!
//! Conservative by design: a part is rewritten only when it has the shape of a path and leads to an existing file, or
//! when it is the name of the one file of that name which this very call made or changed. Whether a path leads to such
//! a file is asked of a closure, once for each spelling. Everything else stays as it is. Work is bounded (invariant
//! B1): beyond a bound references stay as the server wrote them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::local_path::local_path;
use super::tokens::{Token, is_part_of_word, tokens};

/// Longer texts are data rather than a message to somebody, and are not searched.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// Different spellings looked up for one result: each costs a few system calls.
const MAX_LOOKUPS: usize = 4_096;

/// Changed files that are looked for by name: a call that changes more has installed something.
const MAX_CHANGED: usize = 256;

/// The longest path of the systems we run on.
const MAX_PATH_BYTES: usize = 4_096;

/// Answers with the agent's path of a file of this host that the agent may see, else with `None`.
pub type Resolve<'f> = dyn Fn(&Path) -> Option<String> + 'f;

/// A file that the call created or modified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path on this host, in each way that its server may spell it.
    pub host: Vec<PathBuf>,
    /// Its path relative to the working directory of its server, if it lies below.
    pub relative: Option<PathBuf>,
    /// Its path in the agent's tree.
    pub visible: String,
}

/// Finds references to files of one thread in what one call answered.
pub struct References<'f> {
    base: Option<&'f Path>,
    resolve: &'f Resolve<'f>,
    /// Paths with blanks, which have no shape that a token could have. Longest first.
    spelled_out: Vec<(String, String)>,
    /// File names that only one changed file has. Longest first.
    names: Vec<(String, String)>,
    resolved: HashMap<String, Option<String>>,
}

/// Parts of a text that need no further look, by where they begin: where they end, and what stands there instead.
type Settled = BTreeMap<usize, (usize, Option<String>)>;

impl<'f> References<'f> {
    /// References as a server with this working directory writes them, after a call that changed these files.
    pub fn new(base: Option<&'f Path>, changed: &[ChangedFile], resolve: &'f Resolve<'f>) -> Self {
        let changed = if changed.len() <= MAX_CHANGED { changed } else { &[] };
        let mut spelled_out: Vec<_> = changed.iter().flat_map(spellings_with_blanks).collect();
        let mut names = unique_names(changed);
        for longest_first in [&mut spelled_out, &mut names] {
            longest_first.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        }
        Self { base, resolve, spelled_out, names, resolved: HashMap::new() }
    }

    /// The agent's path of a link, or `None` when the link stays as it is.
    pub fn of_link(&mut self, uri: &str) -> Option<String> {
        if let Some(known) = self.resolved.get(uri) {
            return known.clone();
        }
        if uri.len() > MAX_PATH_BYTES || self.resolved.len() >= MAX_LOOKUPS {
            return None;
        }
        let visible = local_path(uri, self.base).and_then(|path| (self.resolve)(&path));
        self.resolved.insert(uri.to_owned(), visible.clone());
        visible
    }

    /// `text` with its references rewritten, or `None` when it holds none.
    pub fn in_text(&mut self, text: &str) -> Option<String> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let mut settled = Settled::new();
        settle_names(text, &self.spelled_out, &mut settled);
        for token in tokens(text) {
            let range = token.range();
            if is_settled(&settled, range.start, range.end) {
                continue;
            }
            match token {
                // A name inside a web address is no file of ours.
                Token::Url(_) => drop(settled.insert(range.start, (range.end, None))),
                Token::Path(_) => {
                    if let Some(visible) = self.of_link(&text[range.clone()]) {
                        settled.insert(range.start, (range.end, Some(visible)));
                    }
                }
            }
        }
        settle_names(text, &self.names, &mut settled);
        rewrite(text, &settled)
    }
}

/// The spellings of a file whose path holds blanks. In a text they end nowhere in particular, so they are looked for
/// letter by letter.
fn spellings_with_blanks(file: &ChangedFile) -> Vec<(String, String)> {
    let mut spellings = Vec::new();
    for host in file.host.iter().filter_map(|path| path.to_str()) {
        spellings.extend([format!("file://{host}"), host.to_owned()]);
    }
    if let Some(relative) = file.relative.as_ref().and_then(|path| path.to_str()) {
        spellings.push(format!("./{relative}"));
        // A bare name must be the only one of its kind, and is looked for as such.
        if relative.contains('/') {
            spellings.push(relative.to_owned());
        }
    }
    spellings.retain(|spelling| spelling.contains(char::is_whitespace));
    spellings.into_iter().map(|spelling| (spelling, file.visible.clone())).collect()
}

/// File names that exactly one changed file has.
fn unique_names(changed: &[ChangedFile]) -> Vec<(String, String)> {
    let mut by_name: HashMap<&str, Option<&str>> = HashMap::new();
    for file in changed {
        if let Some(name) = file.host.first().and_then(|path| path.file_name()).and_then(|name| name.to_str()) {
            by_name.entry(name).and_modify(|only| *only = None).or_insert(Some(&file.visible));
        }
    }
    by_name.into_iter().filter_map(|(name, only)| Some((name.to_owned(), only?.to_owned()))).collect()
}

/// Settles where these names stand free in the text.
fn settle_names(text: &str, names: &[(String, String)], settled: &mut Settled) {
    for (name, visible) in names {
        for (start, _) in text.match_indices(name.as_str()) {
            let end = start + name.len();
            if stands_free(text, start, end) && !is_settled(settled, start, end) {
                settled.insert(start, (end, Some(visible.clone())));
            }
        }
    }
}

/// Whether the part is no piece of a longer word or path. A full stop after it may end a sentence, but not begin an
/// extension.
fn stands_free(text: &str, start: usize, end: usize) -> bool {
    let continues = |next: char| is_part_of_word(next) || matches!(next, '/' | '\\' | '-');
    let before = text[..start].chars().next_back();
    let mut after = text[end..].chars();
    let free_before = !before.is_some_and(|last| continues(last) || last == '.');
    let free_after = match after.next() {
        Some('.') => !after.next().is_some_and(is_part_of_word),
        Some(next) => !continues(next),
        None => true,
    };
    free_before && free_after
}

fn is_settled(settled: &Settled, start: usize, end: usize) -> bool {
    settled.range(..end).next_back().is_some_and(|(_, (settled_end, _))| *settled_end > start)
}

fn rewrite(text: &str, settled: &Settled) -> Option<String> {
    let mut rewritten = String::new();
    let mut done = 0;
    for (start, (end, instead)) in settled {
        if let Some(instead) = instead {
            rewritten.push_str(&text[done..*start]);
            rewritten.push_str(instead);
            done = *end;
        }
    }
    if done == 0 {
        return None;
    }
    rewritten.push_str(&text[done..]);
    Some(rewritten)
}

#[cfg(test)]
mod tests;
