//! `tools/list`: all tools that the caller may use, in one page.
//!
//! Of all servers by their visible names, without those whose schemas are hidden until a search fetches them; of one
//! server by its own names, as it wrote them. A legacy client knows no schema of results but that of an object
//! (mcp.md 14.3), so it is shown no other.

use std::borrow::Cow;

use caribou_core::era::Era;
use caribou_core::raw::{Members, object, text};
use caribou_runtime::ListedTool;
use serde_json::value::to_raw_value;

use crate::fault::Fault;
use crate::place::Place;
use crate::work::Work;

/// The member that says what results look like.
const RESULTS: &str = "outputSchema";

pub(super) async fn run(work: &Work) -> Result<String, Fault> {
    let params = work.params.as_deref().and_then(Members::of);
    if params.is_some_and(|params| params.get("cursor").is_some_and(|cursor| cursor.get() != "null")) {
        return Err(Fault::invalid_params("there is one page: no cursor was ever given out"));
    }
    let (runtime, asked, scope) = (&work.endpoint.runtime, &work.client.asked, &work.client.scope);
    let era = work.client.era;
    let mut text = String::from("{\"tools\":[");
    let mut put = |tool: &str| {
        if !text.ends_with('[') {
            text.push(',');
        }
        text.push_str(tool);
    };
    match &asked.place {
        Place::All => {
            let listed = runtime.list_tools(&asked.caller, scope).await?;
            let visible = listed.tools.iter().filter(|tool| listed.deferred.binary_search(&tool.name).is_err());
            visible.for_each(|tool| put(&shown(tool, &tool.name, era)));
        }
        Place::One(server) => {
            let tools = runtime.tools_of(&asked.caller, scope, server).await?;
            tools.iter().for_each(|tool| put(&shown(tool, &tool.raw_name, era)));
        }
    }
    text.push_str("]}");
    Ok(text)
}

/// The `Tool` object as its server wrote it, by this name.
fn shown<'t>(tool: &'t ListedTool, name: &str, era: Era) -> Cow<'t, str> {
    let written = tool.tool.get();
    let is_renamed = name != &*tool.raw_name;
    if !is_renamed && !written.contains(RESULTS) {
        return Cow::Borrowed(written);
    }
    let (Some(members), Ok(name)) = (Members::of(&tool.tool), to_raw_value(name)) else {
        return Cow::Borrowed(written);
    };
    let is_shortened = era == Era::Legacy && !has_plain_results(&members);
    if !is_renamed && !is_shortened {
        return Cow::Borrowed(written);
    }
    let kept = members.0.iter().filter(|(member, _)| !is_shortened || member != RESULTS);
    Cow::Owned(object(kept.map(|(member, value)| (&**member, if member == "name" { &*name } else { *value }))))
}

/// Whether what it says of its results can be read by every client: they are objects, or nothing is said.
fn has_plain_results(tool: &Members<'_>) -> bool {
    let kind = tool.get(RESULTS).map(|schema| Members::of(schema).and_then(|schema| text(schema.get("type")?)));
    kind.is_none_or(|kind| kind.is_some_and(|kind| kind == "object"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use caribou_core::config::Routing;
    use serde_json::value::RawValue;

    use super::*;

    fn tool(text: &str) -> ListedTool {
        ListedTool {
            name: "web_get".into(),
            server: "web".into(),
            connection: None,
            raw_name: "get".into(),
            tool: RawValue::from_string(text.to_owned()).unwrap().into(),
            repaired: Vec::new().into(),
            routing: Arc::new(Routing::default()),
            is_ours: false,
        }
    }

    #[test]
    fn a_tool_is_renamed_and_otherwise_as_its_server_wrote_it() {
        // Invariant W1.
        let text = r#"{"z":1.0,"name":"get","inputSchema":{"max":9223372036854775809},"name":"get"}"#;
        let tool = tool(text);
        assert_eq!(shown(&tool, "web_get", Era::Legacy), text.replace("\"get\"", "\"web_get\""));
        assert_eq!(shown(&tool, "get", Era::Modern), text);
    }

    #[test]
    fn a_legacy_client_is_shown_no_schema_of_results_that_are_no_objects() {
        // mcp.md 14.3, non-object `structuredContent`.
        let list = tool(r#"{"name":"get","outputSchema":{"type":"array"},"z":1.0}"#);
        assert_eq!(shown(&list, "get", Era::Legacy), r#"{"name":"get","z":1.0}"#);
        assert!(shown(&list, "get", Era::Modern).contains("array"));
        let object = tool(r#"{"name":"get","outputSchema": {"type":"object"}}"#);
        assert_eq!(shown(&object, "get", Era::Legacy), object.tool.get());
    }
}
