//! One set of headers laid over another (contract 8.2).
//!
//! Owns which spelling goes on the wire. One header is one field there: whatever differs only by case is one.

use crate::config::Secret;

/// `base` with `overrides` laid over it. A header keeps the spelling of the `connection`, if that declares it, else
/// the one of `base`, else its own. None of them is changed.
pub fn override_headers(
    base: &[(String, Secret)],
    overrides: &[(String, Secret)],
    connection: &[(String, Secret)],
) -> Vec<(String, Secret)> {
    let mut laid = base.to_vec();
    for (name, value) in overrides {
        let spelling = spelled(connection, name).or_else(|| spelled(base, name)).unwrap_or(name).to_owned();
        let place = laid.iter().position(|(other, _)| is_same(other, name)).unwrap_or(laid.len());
        laid.retain(|(other, _)| !is_same(other, name));
        laid.insert(place.min(laid.len()), (spelling, value.clone()));
    }
    laid
}

/// Whether both name one header.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

fn spelled<'h>(headers: &'h [(String, Secret)], name: &str) -> Option<&'h str> {
    headers.iter().map(|(other, _)| other.as_str()).find(|other| is_same(other, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> Vec<(String, Secret)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect()
    }

    fn laid(base: &[(&str, &str)], overrides: &[(&str, &str)], connection: &[(&str, &str)]) -> Vec<(String, String)> {
        let base = headers(base);
        let before = base.clone();
        let laid = override_headers(&base, &headers(overrides), &headers(connection));
        assert_eq!(base, before, "the base is never changed");
        laid.into_iter().map(|(name, value)| (name, value.expose().to_owned())).collect()
    }

    fn shown(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn one_field_is_left_in_the_spelling_of_the_connection_then_of_the_base() {
        // Contract 8.2, every row of the table.
        let a = [("Authorization", "a")];
        assert_eq!(laid(&a, &[("authorization", "b")], &[]), shown(&[("Authorization", "b")]));
        assert_eq!(laid(&a, &[("AUTHORIZATION", "b")], &[("authorization", "x")]), shown(&[("authorization", "b")]));
        assert_eq!(
            laid(&[("Accept", "x")], &[("X-Tenant-Id", "y")], &[]),
            shown(&[("Accept", "x"), ("X-Tenant-Id", "y")])
        );
        assert_eq!(laid(&[], &[("X-Tenant-Id", "y")], &[]), shown(&[("X-Tenant-Id", "y")]));
    }

    #[test]
    fn every_other_spelling_is_taken_out_and_the_rest_keeps_its_place() {
        // Contract 8.2.
        let base = [("X-First", "1"), ("x-key", "a"), ("X-KEY", "b"), ("X-Last", "2")];
        assert_eq!(laid(&base, &[("X-Key", "c")], &[]), shown(&[("X-First", "1"), ("x-key", "c"), ("X-Last", "2")]));
        assert_eq!(laid(&[], &[("X-Key", "a"), ("x-key", "b")], &[]).len(), 1, "of two overrides the last wins");
    }
}
