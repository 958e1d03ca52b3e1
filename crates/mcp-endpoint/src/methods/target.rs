//! Which server a request is for that is passed on, and what it says there.
//!
//! At one server that is the place itself, and nothing changes. At all of them the name or the URI in the parameters
//! says which, and is written as the server knows it.

use caribou_core::ids::ServerName;
use caribou_core::namespace::{Label, in_member, shown_item};
use caribou_core::raw::{Members, text};
use caribou_runtime::AmongOthers;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::place::Place;
use crate::work::Work;

/// Where a request goes.
pub(super) struct Target {
    pub(super) server: ServerName,
    /// What its URIs are shown with; `None` = as they are.
    pub(super) label: Option<Label>,
    /// The parameters with the server's own names; `None` = as they came.
    pub(super) params: Option<Box<RawValue>>,
}

impl Target {
    /// Of `method` at the place of this work.
    ///
    /// # Errors
    /// What it is about is not there.
    pub(super) async fn of(work: &Work, method: &str) -> Result<Self, Fault> {
        if let Place::One(server) = &work.client.asked.place {
            return Ok(Self { server: server.clone(), label: None, params: None });
        }
        let Some(params) = &work.params else { return Err(Fault::invalid_params("`params` must be an object")) };
        let (server, changed) = match method {
            "prompts/get" => of_prompt(work, params).await?,
            "resources/read" => of_resource(work, params).await?,
            "completion/complete" => of_reference(work, params).await?,
            _ => return Err(Fault::no_method(method)),
        };
        Ok(Self { server: server.server().clone(), label: Some(server.label()), params: changed })
    }
}

type Found = (AmongOthers, Option<Box<RawValue>>);

/// The text of a member.
fn named(params: &RawValue, member: &str) -> Result<String, Fault> {
    let named = Members::of(params).and_then(|params| text(params.get(member)?).map(|text| text.into_owned()));
    named.ok_or_else(|| Fault::invalid_params(format!("`{member}` must be a string")))
}

async fn of_prompt(work: &Work, params: &RawValue) -> Result<Found, Fault> {
    let (client, shown) = (&work.client, named(params, "name")?);
    let found =
        work.endpoint.runtime.server_of_prompt(&client.asked.caller, &client.scope, &shown, &client.asked.request_id);
    let (server, raw) = found.await?;
    Ok((server, shown_item(params, "name", |_| raw.to_owned())))
}

async fn of_resource(work: &Work, params: &RawValue) -> Result<Found, Fault> {
    let shown = named(params, "uri")?;
    let (server, raw) = work.endpoint.runtime.server_of_uri(&work.client.scope, &shown).await.map_err(|error| {
        // A resource that is not there has a code of its own in the legacy era.
        Fault::no_resource(&error.detail, &shown)
    })?;
    Ok((server, shown_item(params, "uri", |_| raw.to_owned())))
}

/// What is to be completed: an argument of a prompt, or of a template of URIs.
async fn of_reference(work: &Work, params: &RawValue) -> Result<Found, Fault> {
    let reference = Members::of(params).and_then(|params| params.get("ref"));
    let Some(reference) = reference else { return Err(Fault::invalid_params("`params.ref` must be an object")) };
    let (server, changed) = match &*named(reference, "type")? {
        "ref/prompt" => of_prompt(work, reference).await?,
        "ref/resource" => of_resource(work, reference).await?,
        _ => return Err(Fault::invalid_params("`params.ref.type` must be `ref/prompt` or `ref/resource`")),
    };
    Ok((server, in_member(params, "ref", |_| changed)))
}
