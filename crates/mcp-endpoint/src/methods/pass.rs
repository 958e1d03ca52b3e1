//! Prompts, resources and completions: passed to their server and back, byte for byte (invariant W1) but for the names
//! and URIs that they are shown by among those of others.

use std::borrow::Cow;

use caribou_core::era::Era;
use caribou_core::namespace::{shown_item, shown_result, shown_uri};
use caribou_core::raw::{Members, text};
use caribou_runtime::{MergedList, PassRequest};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::offers::Offers;
use super::target::Target;
use super::waiting::Waiting;
use super::{list_merged, offers};
use crate::asking::{MAX_ROUNDS, Questions};
use crate::fault::{Fault, INVALID_PARAMS, RESOURCE_NOT_FOUND};
use crate::meta::for_the_next_hop;
use crate::notices::Notices;
use crate::place::Place;
use crate::relay::{self, About};
use crate::work::Work;

/// A method that is passed on, and whether it is offered.
fn passed(method: &str, offers: Offers) -> Option<&'static str> {
    let (method, is_offered) = match method {
        "prompts/list" => ("prompts/list", offers.prompts.is_offered),
        "prompts/get" => ("prompts/get", offers.prompts.is_offered),
        "resources/list" => ("resources/list", offers.resources.is_offered),
        "resources/templates/list" => ("resources/templates/list", offers.resources.is_offered),
        "resources/read" => ("resources/read", offers.resources.is_offered),
        "completion/complete" => ("completion/complete", offers.completions),
        _ => return None,
    };
    is_offered.then_some(method)
}

/// Whether servers may ask something in the middle of it (mcp.md §4).
fn may_be_asked(method: &str) -> bool {
    matches!(method, "prompts/get" | "resources/read")
}

/// A list of all servers.
fn merged(method: &str) -> Option<MergedList> {
    match method {
        "prompts/list" => Some(MergedList::Prompts),
        "resources/list" => Some(MergedList::Resources),
        "resources/templates/list" => Some(MergedList::Templates),
        _ => None,
    }
}

pub(super) async fn run(work: &mut Work, notices: &Notices) -> Result<String, Fault> {
    // Asked before anything is waited for: whatever is no method is none, whoever offers what.
    if passed(&work.method, Offers::all()).is_none() {
        return Err(Fault::no_method(&work.method));
    }
    let offers = offers(&work.endpoint, &work.client.scope, &work.client.asked.place).await?;
    let Some(method) = passed(&work.method, offers) else { return Err(Fault::no_method(&work.method)) };
    if let (Place::All, Some(list)) = (&work.client.asked.place, merged(method)) {
        return list_merged::run(work, list).await;
    }
    let target = Target::of(work, method).await.map_err(|fault| of_this_era(fault, work))?;
    let work = &*work;
    let is_modern = work.client.era == Era::Modern;
    // What a state belongs to goes by the names that the client knows.
    let theirs = work.params.as_deref().and_then(Members::of);
    let named = theirs.as_ref().and_then(|params| text(params.get("name").or(params.get("uri"))?)).unwrap_or_default();
    let about = About { named: &named, arguments: theirs.as_ref().and_then(|params| params.get("arguments")) };
    let params = target.params.as_deref().or(work.params.as_deref());
    let (mut brought, mut kept) = (Vec::new(), None);
    if let Some(theirs) = params.and_then(Members::of).filter(|_| is_modern && may_be_asked(method)) {
        brought = relay::brought_back(work, &theirs, about)?;
        kept = Some(relay::without_brought(&theirs));
    }
    let params = kept.as_deref().or(params);
    for _ in 0..MAX_ROUNDS {
        let result = ask(work, notices, (method, &target), params, brought).await?;
        if is_modern {
            return Ok(relay::with_state_sealed(work, result.get(), about).into_owned());
        }
        let asked = Questions::of(&result).filter(|_| may_be_asked(method));
        let (Some(questions), Some(desk)) = (asked, work.desk(notices)) else {
            return Ok(Box::<str>::from(result).into_string());
        };
        let waiting = Waiting::new(questions.farewell().map(|gone| {
            let runtime = work.endpoint.runtime.clone();
            let asked = request(work, notices, (method, &target), params, gone);
            async move { drop(runtime.pass_request(asked).await) }
        }));
        brought = questions.ask(&desk).await?;
        waiting.over();
    }
    Err(Fault::not_answered("the server never stops asking"))
}

/// Asks the server once; its result by the names that the client knows.
async fn ask(
    work: &Work,
    notices: &Notices,
    (method, target): (&'static str, &Target),
    params: Option<&RawValue>,
    brought: Vec<(String, Box<RawValue>)>,
) -> Result<Box<RawValue>, Fault> {
    let asked = request(work, notices, (method, target), params, brought);
    let result = match work.endpoint.runtime.pass_request(asked).await {
        Ok(result) => result,
        Err(error) => {
            let mut fault = Fault::from(error);
            // What the server says of its own URI is said of the one that was asked for.
            if let (RESOURCE_NOT_FOUND, Some(label)) = (fault.code, &target.label) {
                fault.data =
                    fault.data.map(|data| shown_item(&data, "uri", |uri| shown_uri(label, uri)).unwrap_or(data));
            }
            return Err(of_this_era(fault, work));
        }
    };
    let shown = target.label.as_ref().map(|label| shown_result(method, &result, label).into_owned());
    Ok(shown.unwrap_or(result))
}

/// The request, with what is brought back.
fn request(
    work: &Work,
    notices: &Notices,
    (method, target): (&'static str, &Target),
    params: Option<&RawValue>,
    brought: Vec<(String, Box<RawValue>)>,
) -> PassRequest {
    let client = &work.client;
    let meta: Vec<_> = work.meta.passed.iter().cloned().chain(brought).collect();
    PassRequest {
        server: target.server.clone(),
        method: Cow::Borrowed(method),
        params: for_the_next_hop(params, &meta),
        caller: client.asked.caller.clone(),
        scope: client.scope.clone(),
        secrets: work.meta.secrets.clone(),
        progress: notices.sink(),
        timeout: None,
        request_id: client.asked.request_id.clone(),
    }
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
