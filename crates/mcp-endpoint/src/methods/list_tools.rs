//! `tools/list`: all tools that the caller may use, in one page.
//!
//! Of all servers by their visible names, without those whose schemas are hidden until a search fetches them. Of one server
//! by its own names, as it wrote them, and all of them even where `tool_search` hides schemas: whoever asks for one server
//! wants that server, is not told of others, and has no `tool_search` there to fetch a schema with. A legacy client knows
//! no schema of results but that of an object (mcp.md 14.3), so it is shown no other. Where its revision has tasks it reads
//! of each tool whether we are ready to make one of a call (14.5): also of tools of the modern era, whose servers do not
//! say, and of those that submit for a toolset.

use std::borrow::Cow;

use caribou_core::era::Era;
use caribou_core::namespace::shown_tool;
use caribou_core::raw::{Members, object, text};
use caribou_core::task::native::Support;
use caribou_runtime::ListedTool;
use serde_json::value::{RawValue, to_raw_value};

use crate::fault::Fault;
use crate::place::Place;
use crate::work::Work;

/// The member that says how a tool is called, and that of it which says whether as a task (mcp.md §9.1).
const EXECUTION: &str = "execution";
const TASKS: &str = "taskSupport";

/// The member that says what results look like.
const RESULTS: &str = "outputSchema";

pub(super) async fn run(work: &Work) -> Result<String, Fault> {
    let params = work.params.as_deref().and_then(Members::of);
    if params.is_some_and(|params| params.get("cursor").is_some_and(|cursor| cursor.get() != "null")) {
        return Err(Fault::invalid_params("there is one page: no cursor was ever given out"));
    }
    let (runtime, asked, scope) = (&work.endpoint.runtime, &work.client.asked, &work.client.scope);
    let era = work.client.era;
    let says_tasks = era == Era::Legacy && work.client.takes_tasks;
    let is_followed = work.endpoint.runtime.follows_tasks();
    let support = |tool: &ListedTool| {
        let support = if is_followed { tool.support } else { Support::Forbidden };
        says_tasks.then_some(support)
    };
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
            let is_visible = |tool: &ListedTool| listed.deferred.binary_search(&tool.name).is_err();
            let visible = with_interfaces(work, listed.tools.into_iter().filter(is_visible).collect()).await;
            visible.iter().for_each(|tool| put(&shown(tool, &tool.name, era, support(tool))));
        }
        Place::One(server) => {
            let tools = runtime.tools_of(&asked.caller, scope, server).await?;
            tools.iter().for_each(|tool| put(&shown(tool, &tool.raw_name, era, support(tool))));
        }
    }
    text.push_str("]}");
    Ok(text)
}

/// The tools with their user interfaces as they are read back here. Of a server that offers no resources they are not.
async fn with_interfaces(work: &Work, mut tools: Vec<ListedTool>) -> Vec<ListedTool> {
    // Looked for first: few tools have one.
    if !tools.iter().any(|tool| tool.tool.get().contains("ui://")) {
        return tools;
    }
    let readers = work.endpoint.runtime.servers_with(&work.client.scope, "resources").await;
    for tool in &mut tools {
        let Some(reader) = readers.iter().find(|reader| *reader.server() == tool.server) else { continue };
        if let Cow::Owned(changed) = shown_tool(&tool.tool, &reader.label()) {
            tool.tool = changed.into();
        }
    }
    tools
}

/// The `Tool` object as its server wrote it, by this name. `support` = what it says of tasks, to a client that reads that.
fn shown<'t>(tool: &'t ListedTool, name: &str, era: Era, support: Option<Support>) -> Cow<'t, str> {
    let written = tool.tool.get();
    let is_renamed = name != &*tool.raw_name;
    let says_tasks = support.is_some_and(|support| support != Support::Forbidden || written.contains(EXECUTION));
    if !is_renamed && !written.contains(RESULTS) && !says_tasks {
        return Cow::Borrowed(written);
    }
    let (Some(members), Ok(name)) = (Members::of(&tool.tool), to_raw_value(name)) else {
        return Cow::Borrowed(written);
    };
    let is_shortened = era == Era::Legacy && !has_plain_results(&members);
    let execution = support.and_then(|support| execution(&members, support));
    if !is_renamed && !is_shortened && execution.is_none() {
        return Cow::Borrowed(written);
    }
    let is_left_out = |member: &str| match member {
        RESULTS => is_shortened,
        EXECUTION => execution.is_some(),
        _ => false,
    };
    let kept = members.0.iter().filter(|(member, _)| !is_left_out(member));
    let kept = kept.map(|(member, value)| (&**member, if member == "name" { &*name } else { *value }));
    let execution = execution.as_deref().filter(|execution| execution.get() != "{}");
    Cow::Owned(object(kept.chain(execution.map(|execution| (EXECUTION, execution)))))
}

/// What the tool says of how it is called, with the truth about tasks; `None` = that is what it says.
fn execution(tool: &Members<'_>, support: Support) -> Option<Box<RawValue>> {
    let says = tool.get(EXECUTION).and_then(Members::of).map_or_else(Vec::new, |execution| execution.0);
    let said = says.iter().rev().find(|(member, _)| member == TASKS).map(|(_, said)| *said);
    let true_word = match support {
        Support::Forbidden => None,
        Support::Optional => Some("optional"),
        Support::Required => Some("required"),
    };
    let said_word = said.and_then(text);
    if said_word.as_deref() == true_word || (true_word.is_none() && said_word.as_deref() == Some("forbidden")) {
        return None;
    }
    let word = true_word.and_then(|word| to_raw_value(word).ok());
    let others = says.iter().filter(|(member, _)| member != TASKS).map(|(member, value)| (&**member, *value));
    RawValue::from_string(object(others.chain(word.as_deref().map(|word| (TASKS, word))))).ok()
}

/// Whether what it says of its results can be read by every client: they are objects, or nothing is said.
fn has_plain_results(tool: &Members<'_>) -> bool {
    let kind = tool.get(RESULTS).map(|schema| Members::of(schema).and_then(|schema| text(schema.get("type")?)));
    kind.is_none_or(|kind| kind.is_some_and(|kind| kind == "object"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use caribou_core::config::Routing;

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
            support: Support::Forbidden,
        }
    }

    #[test]
    fn a_tool_is_renamed_and_otherwise_as_its_server_wrote_it() {
        // Invariant W1.
        let text = r#"{"z":1.0,"name":"get","inputSchema":{"max":9223372036854775809},"name":"get"}"#;
        let tool = tool(text);
        assert_eq!(shown(&tool, "web_get", Era::Legacy, None), text.replace("\"get\"", "\"web_get\""));
        assert_eq!(shown(&tool, "get", Era::Modern, None), text);
    }

    #[test]
    fn a_legacy_client_is_shown_no_schema_of_results_that_are_no_objects() {
        // mcp.md 14.3, non-object `structuredContent`.
        let list = tool(r#"{"name":"get","outputSchema":{"type":"array"},"z":1.0}"#);
        assert_eq!(shown(&list, "get", Era::Legacy, None), r#"{"name":"get","z":1.0}"#);
        assert!(shown(&list, "get", Era::Modern, None).contains("array"));
        let object = tool(r#"{"name":"get","outputSchema": {"type":"object"}}"#);
        assert_eq!(shown(&object, "get", Era::Legacy, None), object.tool.get());
    }

    #[test]
    fn a_client_whose_revision_has_tasks_reads_what_we_are_ready_for() {
        // mcp.md 14.5, L with tasks.
        let said = |text: &str, support| {
            let tool = tool(text);
            shown(&tool, "get", Era::Legacy, Some(support)).into_owned()
        };
        let bare = r#"{"name":"get","z":1.0}"#;
        assert_eq!(said(bare, Support::Forbidden), bare);
        let optional = r#"{"name":"get","z":1.0,"execution":{"taskSupport":"optional"}}"#;
        assert_eq!(said(bare, Support::Optional), optional);
        assert_eq!(said(optional, Support::Optional), optional, "as its server wrote it");
        assert_eq!(said(optional, Support::Forbidden), bare, "no task would come of it");
        let more = r#"{"name":"get","execution":{"k":1.0,"taskSupport":"required"}}"#;
        assert_eq!(said(more, Support::Required), more);
        assert_eq!(said(more, Support::Forbidden), r#"{"name":"get","execution":{"k":1.0}}"#);
        let forbidden = r#"{"name":"get","execution":{"taskSupport":"forbidden"}}"#;
        assert_eq!(said(forbidden, Support::Forbidden), forbidden);
        assert_eq!(shown(&tool(optional), "get", Era::Modern, None), optional);
    }
}
