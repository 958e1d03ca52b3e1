//! What there is at a place, as its capabilities say.

use caribou_core::ids::Scope;
use caribou_core::raw::Members;
use serde_json::{Map, Value, json};

use crate::fault::Fault;
use crate::place::Place;
use crate::router::Endpoint;

/// What there is beside tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) completions: bool,
}

/// What there is at `place` for this user.
///
/// # Errors
/// There is no such server.
pub(crate) async fn offers(endpoint: &Endpoint, scope: &Scope, place: &Place) -> Result<Offers, Fault> {
    let Place::One(server) = place else { return Ok(Offers::default()) };
    let offer = endpoint.runtime.one_server(scope, server).await?;
    let capabilities = offer.capabilities.as_deref().and_then(Members::of);
    let has = |name: &str| {
        let capability = capabilities.as_ref().and_then(|capabilities| capabilities.get(name));
        capability.is_some_and(|capability| capability.get().starts_with('{'))
    };
    Ok(Offers { prompts: has("prompts"), resources: has("resources"), completions: has("completions") })
}

impl Offers {
    /// The `ServerCapabilities` object. Only what is really answered is in it.
    pub(crate) fn capabilities(self) -> Value {
        let mut capabilities = Map::new();
        capabilities.insert("tools".to_owned(), json!({ "listChanged": true }));
        capabilities.insert("logging".to_owned(), json!({}));
        for (name, is_offered) in
            [("prompts", self.prompts), ("resources", self.resources), ("completions", self.completions)]
        {
            if is_offered {
                capabilities.insert(name.to_owned(), json!({}));
            }
        }
        Value::Object(capabilities)
    }
}
