//! What a client wrote, with the secrets it was not shown put back (contract 1.13).
//!
//! Owns the way back from `***` and `null` to the stored value; what is shown is said in `hiding`. The source is the
//! entry as it stands in the file, so references such as `$TOKEN` survive. A mask with nothing behind it refuses the
//! write, and so does any mask that is left where a secret belongs: `***` is never stored as a secret. Messages name
//! server and key, never a value (O3).

use serde_json::{Map, Value};

use super::defaults::SERVER_FIELDS;
use super::hiding::{Hiding, SERVER, hidden, mask_left, rule_of};
use super::mask::is_secret_shaped;
use crate::masker::MASK;

/// Fields that a whole write leaves alone when the client does not name them; so it does with extras.
const KEPT: [&str; 4] = ["routing", "tools", "user_auth", "headers_from_context"];

/// Parts of which a client may write some keys and keep the others.
const KEPT_INSIDE: [&str; 2] = ["user_auth", "headers_from_context"];

/// OAuth fields that are shown as `null` and kept when they come back so.
const KEPT_IF_NULL: [&str; 2] = ["client_secret", "refresh_token"];

/// What an absent field means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    /// The whole configuration is written: fields of later versions, and those old clients do not know, stay.
    Kept,
    /// One server is replaced: what is not written is reset, and only an explicit `***` restores.
    Reset,
}

/// Why a masked value cannot be written. `Display` is the text of the 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MaskedValue {
    /// There is nothing to restore.
    #[error("Masked value for '{path}' of MCP server '{server}' has no stored value to restore: send the value itself")]
    NothingStored {
        /// The server.
        server: String,
        /// The key, as a path inside the server.
        path: String,
    },
    /// A list of ours unknown shape was edited while it held masks: nobody can say which mask stands for what.
    #[error("Cannot edit extra config array '{path}' of MCP server '{server}' while masked secrets remain")]
    EditedList {
        /// The server.
        server: String,
        /// The list, as a path inside the server.
        path: String,
    },
    /// A mask stands where a secret belongs.
    #[error("Cannot persist masked secret placeholder for '{path}' of MCP server '{server}'")]
    Placeholder {
        /// The server.
        server: String,
        /// The key, as a path inside the server.
        path: String,
    },
}

/// `written` with what is hidden restored from `stored`.
///
/// # Errors
/// A mask that stands for nothing, or that would be stored.
pub(super) fn merged(
    server: &str,
    written: &Map<String, Value>,
    stored: Option<&Map<String, Value>>,
    absent: Absent,
) -> Result<Map<String, Value>, MaskedValue> {
    let stored = stored.map(|stored| Value::Object(stored.clone()));
    let merge = Merge { server, absent };
    let mut merged = merge.restored(Value::Object(written.clone()), stored.as_ref(), &SERVER, "")?;
    if let (Absent::Kept, Some(stored)) = (absent, &stored) {
        keep_absent(&mut merged, stored);
    }
    match (mask_left(&merged, &SERVER, ""), merged) {
        (None, Value::Object(merged)) => Ok(merged),
        (path, _) => Err(MaskedValue::Placeholder { server: server.to_owned(), path: path.unwrap_or_default() }),
    }
}

struct Merge<'a> {
    server: &'a str,
    absent: Absent,
}

impl Merge<'_> {
    fn restored(
        &self,
        written: Value,
        stored: Option<&Value>,
        rule: &Hiding,
        path: &str,
    ) -> Result<Value, MaskedValue> {
        match (rule, written) {
            (Hiding::Clear, written) => Ok(written),
            (Hiding::Null, written) => Ok(self.restored_null(written, stored)),
            (Hiding::Values, Value::Object(members)) => {
                self.each(members, stored, path, |_, value, stored, path| self.unmasked(value, stored, path))
            }
            (Hiding::Each(rule), Value::Object(members)) => {
                self.each(members, stored, path, |_, value, stored, path| self.restored(value, stored, rule, path))
            }
            (Hiding::Fields(table), Value::Object(members)) => {
                self.each(members, stored, path, |key, value, stored, path| match rule_of(table, key) {
                    Some(rule) => self.restored(value, stored, rule, path),
                    None => self.restored_by_name(key, value, stored, path),
                })
            }
            (Hiding::ByName, Value::Object(members)) => self.each(members, stored, path, |key, value, stored, path| {
                self.restored_by_name(key, value, stored, path)
            }),
            (Hiding::ByName, Value::Array(items)) => self.restored_list(items, stored, path),
            (Hiding::ByName, written) => Ok(written),
            // A part of a wrong kind was shown as one mask.
            (Hiding::Values | Hiding::Fields(_) | Hiding::Each(_), written) => self.unmasked(written, stored, path),
        }
    }

    /// Merges key by key; keys that are not written are dropped.
    fn each(
        &self,
        members: Map<String, Value>,
        stored: Option<&Value>,
        path: &str,
        merge: impl Fn(&str, Value, Option<&Value>, &str) -> Result<Value, MaskedValue>,
    ) -> Result<Value, MaskedValue> {
        let stored = stored.and_then(Value::as_object);
        let merge = |(key, value): (String, Value)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let value = merge(&key, value, stored.and_then(|stored| stored.get(&key)), &path)?;
            Ok((key, value))
        };
        members.into_iter().map(merge).collect()
    }

    fn restored_by_name(
        &self,
        key: &str,
        written: Value,
        stored: Option<&Value>,
        path: &str,
    ) -> Result<Value, MaskedValue> {
        if is_secret_shaped(key) && written == MASK {
            return self.unmasked(written, stored, path);
        }
        self.restored(written, stored, &Hiding::ByName, path)
    }

    /// The stored value behind a mask; anything but a mask is new and stays.
    fn unmasked(&self, written: Value, stored: Option<&Value>, path: &str) -> Result<Value, MaskedValue> {
        if written != MASK {
            return Ok(written);
        }
        let nothing = || MaskedValue::NothingStored { server: self.server.to_owned(), path: path.to_owned() };
        stored.cloned().ok_or_else(nothing)
    }

    /// A secret that is shown as `null`: so written it is kept, empty it is cleared.
    fn restored_null(&self, written: Value, stored: Option<&Value>) -> Value {
        let kept = || stored.cloned().unwrap_or(Value::Null);
        match self.absent {
            Absent::Kept if written.is_null() => kept(),
            Absent::Reset if written == MASK && stored.is_some_and(|stored| !stored.is_null()) => kept(),
            _ if written == "" => Value::Null,
            _ => written,
        }
    }

    /// A list has no keys to match its items by: while it holds a mask it must come back as it was shown.
    fn restored_list(&self, items: Vec<Value>, stored: Option<&Value>, path: &str) -> Result<Value, MaskedValue> {
        let written = Value::Array(items);
        if mask_left(&written, &Hiding::ByName, path).is_none() {
            return Ok(written);
        }
        let stored = stored.filter(|stored| hidden(stored, &Hiding::ByName) == written).cloned();
        stored.ok_or_else(|| MaskedValue::EditedList { server: self.server.to_owned(), path: path.to_owned() })
    }
}

/// Adds what a whole write leaves alone.
fn keep_absent(merged: &mut Value, stored: &Value) {
    keep(merged, stored, |key| KEPT.contains(&key) || !SERVER_FIELDS.contains(&key));
    for part in KEPT_INSIDE {
        if let (Some(merged), Some(stored)) = (merged.get_mut(part), stored.get(part)) {
            keep(merged, stored, |_| true);
        }
    }
    if let (Some(merged), Some(stored)) = (merged.get_mut("oauth"), stored.get("oauth")) {
        keep(merged, stored, |key| KEPT_IF_NULL.contains(&key));
    }
}

fn keep(merged: &mut Value, stored: &Value, kept: impl Fn(&str) -> bool) {
    let (Value::Object(merged), Value::Object(stored)) = (merged, stored) else { return };
    for (key, value) in stored {
        if kept(key) && !merged.contains_key(key) {
            merged.insert(key.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merge(absent: Absent, written: &Value, stored: &Value) -> Result<Value, String> {
        merged("s", written.as_object().unwrap(), stored.as_object(), absent)
            .map(Value::Object)
            .map_err(|refusal| refusal.to_string())
    }

    fn kept(written: Value, stored: Value) -> Result<Value, String> {
        merge(Absent::Kept, &written, &stored)
    }

    #[test]
    fn a_mask_restores_what_is_stored_and_needs_something_stored() {
        // Contract 1.13, `env` and `headers`.
        for part in ["env", "headers"] {
            assert_eq!(kept(json!({part: {"K": "***"}}), json!({part: {"K": "$V"}})), Ok(json!({part: {"K": "$V"}})));
            for stored in [json!({part: {"L": "v"}}), json!({}), Value::Null] {
                let refusal = kept(json!({part: {"K": "***"}}), stored).unwrap_err();
                assert!(refusal.contains(&format!("'{part}.K' of MCP server 's'")), "{refusal}");
            }
            assert_eq!(kept(json!({part: {"K": "new"}}), json!({part: {"K": "v"}})), Ok(json!({part: {"K": "new"}})));
            assert_eq!(kept(json!({part: {}}), json!({part: {"K": "v"}})), Ok(json!({part: {}})));
        }
    }

    #[test]
    fn oauth_secrets_are_kept_by_null_cleared_by_nothing_and_replaced_by_anything_else() {
        // Contract 1.13, `oauth`.
        for key in ["client_secret", "refresh_token"] {
            let stored = json!({"oauth": {key: "v"}});
            for (written, after) in [
                (json!({key: null}), json!({key: "v"})),
                (json!({}), json!({key: "v"})),
                (json!({key: ""}), json!({key: null})),
                (json!({key: "new"}), json!({key: "new"})),
            ] {
                assert_eq!(kept(json!({"oauth": written}), stored.clone()), Ok(json!({"oauth": after})));
            }
            let refusal = kept(json!({"oauth": {key: "***"}}), stored).unwrap_err();
            assert_eq!(
                refusal,
                format!("Cannot persist masked secret placeholder for 'oauth.{key}' of MCP server 's'")
            );
            assert_eq!(kept(json!({"oauth": {key: null}}), json!({"oauth": null})), Ok(json!({"oauth": {key: null}})));
        }
        assert_eq!(kept(json!({"oauth": null}), json!({"oauth": {"client_secret": "v"}})), Ok(json!({"oauth": null})));
        assert_eq!(
            kept(
                json!({"oauth": {"extra_token_params": {"k": "***"}}}),
                json!({"oauth": {"extra_token_params": {"k": "v"}, "gone": 1}})
            ),
            Ok(json!({"oauth": {"extra_token_params": {"k": "v"}}}))
        );
    }

    #[test]
    fn extras_are_restored_by_the_shape_of_their_keys() {
        // Contract 1.13, extras.
        let stored = json!({"apiKey": "v", "flag": "f", "nested": {"token": "t", "note": "n"}});
        assert_eq!(
            kept(json!({"apiKey": "***", "flag": "***", "nested": {"token": "***"}}), stored.clone()),
            Ok(json!({"apiKey": "v", "flag": "***", "nested": {"token": "t"}}))
        );
        for (written, path) in [
            (json!({"secret": "***"}), "'secret'"),
            (json!({"nested": {"password": "***"}}), "'nested.password'"),
            (json!({"tools": {"t": {"token": "***"}}}), "'tools.t.token'"),
            (json!({"oauth": {"bearer": "***"}}), "'oauth.bearer'"),
        ] {
            let refusal = kept(written, stored.clone()).unwrap_err();
            assert!(refusal.contains(path) && refusal.contains("'s'"), "{refusal}");
        }
    }

    #[test]
    fn a_list_with_masks_comes_back_as_shown_or_not_at_all() {
        // Contract 1.13, lists.
        let stored = json!({"x": [{"token": "1", "n": "a"}, {"token": "2", "n": "b"}]});
        let shown = json!({"x": [{"token": "***", "n": "a"}, {"token": "***", "n": "b"}]});
        assert_eq!(kept(shown, stored.clone()), Ok(stored.clone()));
        for edited in [
            json!({"x": [{"token": "***", "n": "b"}, {"token": "***", "n": "a"}]}),
            json!({"x": [{"token": "***", "n": "a"}]}),
            json!({"x": [{"token": "***", "n": "a"}, {"token": "new", "n": "b"}]}),
            json!({"y": [{"token": "***"}]}),
        ] {
            let refusal = kept(edited, stored.clone()).unwrap_err();
            assert!(refusal.starts_with("Cannot edit extra config array '"), "{refusal}");
        }
        assert_eq!(kept(json!({"x": ["***", {"token": "new"}]}), stored), Ok(json!({"x": ["***", {"token": "new"}]})));
    }

    #[test]
    fn a_whole_write_keeps_what_it_does_not_name_and_a_replacement_resets_it() {
        // Contract 1.13, omitted fields; 2.2, complete replacement.
        let stored = json!({
            "command": "x", "args": ["a"], "routing": {"mode": "prefer"}, "tools": {"t": {}}, "icon": "i", "token": "v",
            "user_auth": {"users": {"a": "v"}, "header": "X"}, "headers_from_context": {"headers": {"A": "k"}},
            "oauth": {"client_secret": "v", "token_url": "u"},
        });
        let written = json!({"command": "y", "user_auth": {"enabled": false}, "headers_from_context": null});
        assert_eq!(
            kept(written.clone(), stored.clone()),
            Ok(json!({
                "command": "y", "user_auth": {"enabled": false, "users": {"a": "v"}, "header": "X"},
                "headers_from_context": null, "routing": {"mode": "prefer"}, "tools": {"t": {}}, "icon": "i", "token": "v",
            }))
        );
        assert_eq!(merge(Absent::Reset, &written, &stored), Ok(written));
        let explicit = json!({"token": "***", "oauth": {"client_secret": "***", "refresh_token": null}});
        assert_eq!(
            merge(Absent::Reset, &explicit, &stored),
            Ok(json!({"token": "v", "oauth": {"client_secret": "v", "refresh_token": null}}))
        );
    }

    #[test]
    fn a_written_map_of_users_replaces_the_map_and_its_masks_restore() {
        // Contract 1.13, `user_auth`.
        let stored = json!({"user_auth": {"users": {"a": "1", "b": "2"}}});
        assert_eq!(
            kept(json!({"user_auth": {"users": {"b": "***", "c": "3"}}}), stored.clone()),
            Ok(json!({"user_auth": {"users": {"b": "2", "c": "3"}}}))
        );
        assert!(kept(json!({"user_auth": {"users": {"c": "***"}}}), stored).unwrap_err().contains("user_auth.users.c"));
    }

    #[test]
    fn a_mask_that_stands_in_the_file_is_not_written_again() {
        // Contract 1.13, any mask left.
        let refusal = kept(json!({"env": {"K": "***"}}), json!({"env": {"K": "***"}})).unwrap_err();
        assert_eq!(refusal, "Cannot persist masked secret placeholder for 'env.K' of MCP server 's'");
    }
}
