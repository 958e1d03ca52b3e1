//! Prompts, resources and completions of one server: passed to it and back, byte for byte (invariant W1).

use std::borrow::Cow;

use caribou_core::era::Era;
use caribou_core::raw::{Members, text};
use caribou_runtime::PassRequest;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::offers;
use crate::fault::{Fault, INVALID_PARAMS, RESOURCE_NOT_FOUND};
use crate::meta::for_the_next_hop;
use crate::notices::Notices;
use crate::place::Place;
use crate::relay;
use crate::work::Work;

/// A method that is passed on, and whether it is offered.
fn passed(method: &str, offers: super::offers::Offers) -> Option<&'static str> {
    let (method, is_offered) = match method {
        "prompts/list" => ("prompts/list", offers.prompts),
        "prompts/get" => ("prompts/get", offers.prompts),
        "resources/list" => ("resources/list", offers.resources),
        "resources/templates/list" => ("resources/templates/list", offers.resources),
        "resources/read" => ("resources/read", offers.resources),
        "completion/complete" => ("completion/complete", offers.completions),
        _ => return None,
    };
    is_offered.then_some(method)
}

pub(super) async fn run(work: &mut Work, notices: &Notices) -> Result<String, Fault> {
    let client = &work.client;
    let Place::One(server) = &client.asked.place else { return Err(Fault::no_method(&work.method)) };
    let offers = offers(&work.endpoint, &client.scope, &client.asked.place).await?;
    let Some(method) = passed(&work.method, offers) else { return Err(Fault::no_method(&work.method)) };
    let named = named(work);
    let params = for_the_next_hop(work.params.as_deref(), &work.meta.passed);
    let params = if client.era == Era::Modern { relay::with_state_opened(work, params, &named)? } else { params };
    let request = PassRequest {
        server: server.clone(),
        method: Cow::Borrowed(method),
        params,
        caller: client.asked.caller.clone(),
        scope: client.scope.clone(),
        secrets: std::mem::take(&mut work.meta.secrets),
        progress: notices.sink(),
        timeout: None,
        request_id: client.asked.request_id.clone(),
    };
    match work.endpoint.runtime.pass_request(request).await {
        Ok(result) if work.client.era == Era::Modern => {
            Ok(relay::with_state_sealed(work, result.get(), &named).into_owned())
        }
        Ok(result) => Ok(Box::<str>::from(result).into_string()),
        Err(error) => Err(of_this_era(error.into(), work)),
    }
}

/// What a request is about.
fn named(work: &Work) -> String {
    let params = work.params.as_deref().and_then(Members::of);
    let named = params.as_ref().and_then(|params| text(params.get("name").or(params.get("uri"))?));
    named.unwrap_or_default().into_owned()
}

/// A resource that is not there has a code of its own in the legacy era, and none in the modern one (mcp.md §7).
fn of_this_era(fault: Fault, work: &Work) -> Fault {
    if fault.code != RESOURCE_NOT_FOUND || work.client.era == Era::Legacy {
        return fault;
    }
    let params = work.params.as_deref().and_then(Members::of);
    let uri = params.as_ref().and_then(|params| text(params.get("uri")?));
    let data = fault.data.or_else(|| to_raw_value(&json!({ "uri": uri? })).ok());
    Fault { code: INVALID_PARAMS, status: axum::http::StatusCode::BAD_REQUEST, data, ..fault }
}
