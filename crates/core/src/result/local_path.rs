//! Which path of this host's file system a reference names (contract 4.7).
//!
//! Owns the reading of references only; whether such a file exists, and whether it may be shown, is asked elsewhere.
//! What is no local path is `None` and stays as the server wrote it.

use std::path::{Path, PathBuf};

/// The path that `reference` names: a `file:` URI with its percent escapes decoded and its host ignored, or a bare
/// path. A bare relative one starts at `base`, the working directory of the server that wrote it.
///
/// `None` for every other scheme, for a URI that is malformed, relative or empty, and for a relative path without
/// `base`.
pub(super) fn local_path(reference: &str, base: Option<&Path>) -> Option<PathBuf> {
    let path = match reference.split_once(':') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file") => return path_of_file_uri(rest),
        Some((scheme, _)) if is_scheme(scheme) => return None,
        _ => Path::new(reference),
    };
    if path.is_absolute() {
        Some(path.to_owned())
    } else if reference.is_empty() {
        None
    } else {
        base.map(|base| base.join(path))
    }
}

/// RFC 3986, section 3.1.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// The path of what follows `file:` (RFC 8089). Query and fragment are no part of it.
fn path_of_file_uri(rest: &str) -> Option<PathBuf> {
    let hierarchy = rest.split(['?', '#']).next().unwrap_or_default();
    let path = match hierarchy.strip_prefix("//") {
        Some(with_host) => {
            let (host, path) = with_host.split_at(with_host.find('/')?);
            // Half an IPv6 address.
            if host.contains('[') != host.contains(']') {
                return None;
            }
            path
        }
        None => hierarchy,
    };
    path.starts_with('/').then(|| percent_decoded(path))?.map(PathBuf::from)
}

/// Decodes `%XX`; a `%` that opens no escape stands for itself. `None` when the bytes are no UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = bytes.get(at..at + 3).filter(|escape| escape[0] == b'%').and_then(|escape| {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            u8::try_from(digit(escape[1])? * 16 + digit(escape[2])?).ok()
        });
        decoded.push(escape.unwrap_or(bytes[at]));
        at += if escape.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_paths(base: Option<&str>, rows: &[(&str, Option<&str>)]) {
        for (reference, expected) in rows {
            let path = local_path(reference, base.map(Path::new));
            assert_eq!(path.as_deref(), expected.map(Path::new), "{reference}");
        }
    }

    #[test]
    fn file_uris_and_absolute_paths_name_a_path() {
        // Contract 4.7.
        assert_paths(
            None,
            &[
                ("/a/b.txt", Some("/a/b.txt")),
                ("file:///a/b.txt", Some("/a/b.txt")),
                ("FILE:///a", Some("/a")),
                ("file:/a", Some("/a")),
                ("file:///a/my%20b%2Ec", Some("/a/my b.c")),
                ("file://localhost/a", Some("/a")),
                ("file://elsewhere/a", Some("/a")),
                ("file:///a/100%", Some("/a/100%")),
                ("file:///a/%zz", Some("/a/%zz")),
                ("file:///a.md?x#y", Some("/a.md")),
                ("/a/my b%20c", Some("/a/my b%20c")),
                ("/a:b", Some("/a:b")),
            ],
        );
    }

    #[test]
    fn other_schemes_and_malformed_uris_name_none() {
        // Contract 4.7.
        for base in [None, Some("/w")] {
            let other = [
                "https://example.org/a",
                "http://example.org",
                "data:text/plain,x",
                "C:\\a\\b",
                "s3:bucket/key",
                "file:relative",
                "file:./relative",
                "file://",
                "file:",
                "file://host",
                "file://[::1/a",
                "file://::1]/a",
                "file:///a/%ff",
                "",
            ];
            assert_paths(base, &other.map(|reference| (reference, None)));
        }
    }

    #[test]
    fn a_relative_path_needs_a_base() {
        // Contract 4.7.
        let relative = ["./x", "a/b", "../x", "x"];
        assert_paths(None, &relative.map(|reference| (reference, None)));
        let joined = [("./x", Some("/w/./x")), ("a/b", Some("/w/a/b")), ("../x", Some("/w/../x")), ("x", Some("/w/x"))];
        assert_paths(Some("/w"), &joined);
    }
}
