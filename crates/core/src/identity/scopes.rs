//! OAuth scopes: which a credential holds, and which a use requires (RFC 6749 §3.3; mcp.md 10.1).
//!
//! Only tokens of an issuer have scopes. Whoever presents none of those holds all: an API key is narrowed by the tool rules
//! it was made with, and the program itself by nothing.

use std::sync::Arc;

use serde_json::Value;

use super::{Principal, Refusal};

/// Where scopes stand in the claims of a token: as RFC 9068 §2.2.3 has it, else as some issuers do.
const CLAIMS: [&str; 2] = ["scope", "scp"];

/// Which scopes a caller holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HeldScopes {
    /// All: its credential is none that has scopes.
    #[default]
    All,
    /// Those that its token names.
    Only(Arc<[String]>),
}

impl HeldScopes {
    /// Those that the claims of a token name: one text with blanks between, or a list of texts. A token that names none
    /// holds none.
    pub fn of_claims(claims: &Value) -> Self {
        let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        let held = match CLAIMS.into_iter().find_map(|name| claims.get(name).filter(|claim| !claim.is_null())) {
            Some(Value::String(text)) => words(text),
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        Self::Only(held.into())
    }

    fn holds(&self, scope: &String) -> bool {
        match self {
            Self::All => true,
            Self::Only(held) => held.contains(scope),
        }
    }
}

impl Principal {
    /// Whether it holds all of `required`.
    ///
    /// # Errors
    /// It lacks one. The refusal names all of them, so that one more token is enough (mcp.md 10.1).
    pub fn holds(&self, required: &Arc<[String]>) -> Result<(), Refusal> {
        if required.iter().all(|scope| self.scopes.holds(scope)) {
            Ok(())
        } else {
            Err(Refusal::Scopes(required.clone()))
        }
    }
}

/// Whether `text` may be a scope: printable ASCII without blanks, quotes and backslashes (RFC 6749 §3.3).
pub fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scopes(list: &[&str]) -> Arc<[String]> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn scopes_are_read_from_either_claim_in_either_form() {
        for (claims, held) in [
            (json!({"scope": "a b:c  d"}), &["a", "b:c", "d"][..]),
            (json!({"scp": ["a", 7, "b"]}), &["a", "b"]),
            (json!({"scp": "a"}), &["a"]),
            (json!({"scope": ["a"], "scp": "b"}), &["a"]),
            (json!({"scope": null, "scp": "b"}), &["b"]),
            (json!({"scope": ""}), &[]),
            (json!({"scope": true}), &[]),
            (json!({}), &[]),
        ] {
            assert_eq!(HeldScopes::of_claims(&claims), HeldScopes::Only(scopes(held)), "{claims}");
        }
    }

    #[test]
    fn every_scope_that_is_required_must_be_held_and_all_are_named_at_once() {
        // mcp.md §17, S22.
        let caller = |held: HeldScopes| Principal { scopes: held, ..Principal::local() };
        let only = |held: &[&str]| caller(HeldScopes::Only(scopes(held)));
        let needed = scopes(&["a", "b"]);
        assert_eq!(only(&["b", "c", "a"]).holds(&needed), Ok(()));
        assert_eq!(only(&[]).holds(&scopes(&[])), Ok(()));
        for held in [&["a"][..], &["b"], &["A", "b"], &["a b"], &[]] {
            assert_eq!(only(held).holds(&needed), Err(Refusal::Scopes(needed.clone())), "{held:?}");
        }
        assert_eq!(caller(HeldScopes::All).holds(&needed), Ok(()), "a key has no scopes");
        let told = only(&["a"]).holds(&needed).unwrap_err().to_string();
        assert!(told.contains("`a b`"), "{told}");
    }

    #[test]
    fn a_scope_fits_into_a_quoted_text() {
        // RFC 6749 §3.3.
        for good in ["a", "tools:read", "https://api.example/x", "!#[]~"] {
            assert!(is_scope(good), "{good}");
        }
        for bad in ["", "a b", "a\"", "a\\", "a\n", "\u{e9}", " "] {
            assert!(!is_scope(bad), "{bad:?}");
        }
    }
}
