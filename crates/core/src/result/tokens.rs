//! Which parts of a text have the shape of a path (contract 4.7).
//!
//! Owns the shape only; nothing is looked up. A token begins where no word or path is under way and ends at a blank, a
//! quote or one of `<>|*?`; punctuation at its end belongs to the sentence around it. Each character is looked at a
//! bounded number of times.

use std::ops::Range;

/// Punctuation that ends a sentence rather than a path.
const TRAILING: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}', '>', '"', '\'', '`'];

/// A part of a text, as a range of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A `file:` URI, an absolute path, or a relative one with at least one `/`; without trailing punctuation.
    Path(Range<usize>),
    /// Any other URI with an authority.
    Url(Range<usize>),
}

impl Token {
    /// Where it stands.
    pub(super) fn range(&self) -> Range<usize> {
        match self {
            Self::Path(range) | Self::Url(range) => range.clone(),
        }
    }
}

/// The tokens of `text`, in order.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Token> {
    let mut at = 0;
    let mut before = None;
    std::iter::from_fn(move || {
        while let Some(next) = text[at..].chars().next() {
            let Some(opened) = opens(&text[at..], before) else {
                before = Some(next);
                at += next.len_utf8();
                continue;
            };
            let start = at;
            let ends: fn(char) -> bool = match opened {
                Opened::Path => ends_path,
                Opened::Url => ends_url,
            };
            at += text[at..].find(ends).unwrap_or(text.len() - at);
            before = text[..at].chars().next_back();
            return Some(match opened {
                Opened::Path => Token::Path(start..start + text[start..at].trim_end_matches(TRAILING).len()),
                Opened::Url => Token::Url(start..at),
            });
        }
        None
    })
}

/// A letter, a digit or `_`.
pub(super) fn is_part_of_word(next: char) -> bool {
    next.is_alphanumeric() || next == '_'
}

fn ends_path(next: char) -> bool {
    ends_url(next) || matches!(next, '|' | '*' | '?')
}

fn ends_url(next: char) -> bool {
    next.is_whitespace() || matches!(next, '"' | '\'' | '`' | '<' | '>')
}

enum Opened {
    Path,
    Url,
}

/// What opens at the beginning of `rest`, with `before` in front of it.
fn opens(rest: &str, before: Option<char>) -> Option<Opened> {
    if before.is_some_and(goes_on) {
        return None;
    }
    if rest.starts_with('/') {
        // Of a scheme that does not look like one, such as `https:` at the end of a longer word.
        let authority = before == Some(':') && rest.starts_with("//");
        return Some(if authority { Opened::Url } else { Opened::Path });
    }
    let word =
        rest.find(|next: char| !(is_part_of_word(next) || matches!(next, '.' | '-' | '+'))).unwrap_or(rest.len());
    let (word, rest) = rest.split_at(word);
    if word.is_empty() {
        return None;
    }
    if rest.starts_with('/') {
        // After a colon it may be the rest of an opaque URI, such as `data:text/plain`; after an at sign a package.
        let opaque = matches!(before, Some(':' | '@')) || word.contains('+');
        return (!opaque).then_some(Opened::Path);
    }
    if word.eq_ignore_ascii_case("file") && rest.starts_with(":/") {
        return Some(Opened::Path);
    }
    rest.starts_with("://").then_some(Opened::Url)
}

/// Whether a word, a path, a variable or an expression is under way after this character.
fn goes_on(last: char) -> bool {
    is_part_of_word(last) || matches!(last, '.' | '/' | '\\' | '-' | '~' | '$' | '%' | '+' | ')' | ']' | '}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        tokens(text).filter(|token| matches!(token, Token::Path(_))).map(|token| &text[token.range()]).collect()
    }

    #[test]
    fn paths_are_found_without_what_stands_around_them() {
        // Contract 4.7.
        for (text, expected) in [
            ("/a/b.txt", &["/a/b.txt"][..]),
            ("see /a/b.txt.", &["/a/b.txt"]),
            ("file:///a/b%20c, then", &["file:///a/b%20c"]),
            ("[Page](./page.yml)", &["./page.yml"]),
            ("(../x/y); out/x.md!", &["../x/y", "out/x.md"]),
            ("`.cache/page-1.yml`", &[".cache/page-1.yml"]),
            (r#"{"path":"/a/b","n":1}"#, &["/a/b"]),
            ("path=/a/b", &["/a/b"]),
            ("Saved:/a/b", &["/a/b"]),
            ("/a/b?<c>|/d/e*", &["/a/b", "/d/e"]),
            ("'/a/b\"'", &["/a/b"]),
            ("grün/böse.md und /ö", &["grün/böse.md", "/ö"]),
            ("/a/b /a/b", &["/a/b", "/a/b"]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn what_only_resembles_a_path_is_none() {
        // Contract 4.7.
        for text in [
            "https://example.org/a/b and ftp://x/y",
            "data:text/plain,x",
            "~/a/b $HOME/a ${HOME}/a %TEMP%/a",
            r"C:\work\out/a.txt",
            "@scope/package git+ssh://a/b",
            "plain words. page.yml",
            "f(x)/2",
            "",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
