//! What there is at a place, as its capabilities say.

use std::ops::BitOr;

use caribou_core::ids::Scope;
use caribou_core::raw::Members;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::fault::Fault;
use crate::place::Place;
use crate::router::Endpoint;

/// What there is beside tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    pub(crate) prompts: Kind,
    pub(crate) resources: Kind,
    /// Whether resources can be subscribed to.
    pub(crate) subscribe: bool,
    pub(crate) completions: bool,
}

/// Things of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) is_offered: bool,
    /// Whether it is told when there are others.
    pub(crate) list_changed: bool,
}

/// What there is at `place` for this user: of all servers together what any of them offers that is reached.
///
/// # Errors
/// There is no such server.
pub(crate) async fn offers(endpoint: &Endpoint, scope: &Scope, place: &Place) -> Result<Offers, Fault> {
    let all = endpoint.runtime.capabilities(scope, place.server()).await?;
    Ok(all.iter().map(|capabilities| Offers::of(capabilities)).fold(Offers::default(), BitOr::bitor))
}

impl Offers {
    /// Everything.
    pub(super) fn all() -> Self {
        let kind = Kind { is_offered: true, list_changed: true };
        Self { prompts: kind, resources: kind, subscribe: true, completions: true }
    }

    /// Of a server with these capabilities.
    fn of(capabilities: &RawValue) -> Self {
        let members = Members::of(capabilities);
        let kind = |name: &str| members.as_ref().and_then(|all| all.get(name)).and_then(Members::of);
        let says = |kind: &Option<Members<'_>>, word: &str| {
            kind.as_ref().and_then(|kind| kind.get(word)).is_some_and(|said| said.get() == "true")
        };
        let (prompts, resources) = (kind("prompts"), kind("resources"));
        Self {
            prompts: Kind { is_offered: prompts.is_some(), list_changed: says(&prompts, "listChanged") },
            resources: Kind { is_offered: resources.is_some(), list_changed: says(&resources, "listChanged") },
            subscribe: says(&resources, "subscribe"),
            completions: kind("completions").is_some(),
        }
    }

    /// The `ServerCapabilities` object. Only what is really answered is in it.
    pub(crate) fn capabilities(self) -> Value {
        let mut capabilities = Map::new();
        capabilities.insert("tools".to_owned(), json!({ "listChanged": true }));
        capabilities.insert("logging".to_owned(), json!({}));
        let mut put = |name: &str, is_offered: bool, words: &[(&str, bool)]| {
            let said = words.iter().filter(|(_, is_said)| *is_said);
            let said: Map<String, Value> = said.map(|(word, _)| ((*word).to_owned(), true.into())).collect();
            if is_offered {
                capabilities.insert(name.to_owned(), said.into());
            }
        };
        put("prompts", self.prompts.is_offered, &[("listChanged", self.prompts.list_changed)]);
        let of_resources = [("subscribe", self.subscribe), ("listChanged", self.resources.list_changed)];
        put("resources", self.resources.is_offered, &of_resources);
        put("completions", self.completions, &[]);
        Value::Object(capabilities)
    }
}

impl BitOr for Kind {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self { is_offered: self.is_offered || other.is_offered, list_changed: self.list_changed || other.list_changed }
    }
}

impl BitOr for Offers {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self {
            prompts: self.prompts | other.prompts,
            resources: self.resources | other.resources,
            subscribe: self.subscribe || other.subscribe,
            completions: self.completions || other.completions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers(capabilities: &str) -> Offers {
        Offers::of(&RawValue::from_string(capabilities.to_owned()).unwrap())
    }

    #[test]
    fn what_any_server_offers_is_offered_of_all() {
        let one = offers(r#"{"prompts":{"listChanged":true},"resources":{"subscribe":false},"x":1}"#);
        let other = offers(r#"{"resources":{"subscribe":true},"completions":{}}"#);
        let expected = json!({ "tools": { "listChanged": true }, "logging": {}, "prompts": { "listChanged": true },
            "resources": { "subscribe": true }, "completions": {} });
        assert_eq!((one | other).capabilities(), expected);
        assert_eq!(offers("[]"), Offers::default());
    }
}
