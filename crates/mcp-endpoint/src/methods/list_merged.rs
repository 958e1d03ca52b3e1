//! Prompts and resources of all servers as one list, page by page.

use caribou_core::raw::{Members, object, text};
use caribou_runtime::{ListMerged, MergedList};
use serde_json::json;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::work::Work;

pub(super) async fn run(work: &mut Work, list: MergedList) -> Result<String, Fault> {
    let params = work.params.as_deref().and_then(Members::of);
    let cursor = match params.as_ref().and_then(|params| params.get("cursor")).filter(|cursor| cursor.get() != "null") {
        Some(cursor) => Some(text(cursor).ok_or_else(|| Fault::invalid_params("`params.cursor` must be a string"))?),
        None => None,
    };
    let cursor = cursor.map(|cursor| cursor.into_owned());
    let passed = work.meta.passed.iter().map(|(key, value)| (key.as_str(), &**value));
    let meta = (!work.meta.passed.is_empty()).then(|| object(passed));
    let page = work.endpoint.runtime.list_merged(ListMerged {
        list,
        cursor,
        meta: meta.and_then(|meta| RawValue::from_string(meta).ok()),
        caller: work.client.asked.caller.clone(),
        scope: work.client.scope.clone(),
        secrets: std::mem::take(&mut work.meta.secrets),
        request_id: work.request_id(),
    });
    let page = page.await?;
    let items: Vec<&str> = page.items.iter().map(|item| item.get()).collect();
    let next = page.next.map_or_else(String::new, |next| format!(",\"nextCursor\":{}", json!(next)));
    Ok(format!("{{\"{}\":[{}]{next}}}", list.member(), items.join(",")))
}
