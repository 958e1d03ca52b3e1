//! From a server's raw list to the tools that are shown, and from many servers to one list.
//!
//! A tool that cannot be shown removes only itself, with a warning. Which server a tool belongs to is decided by who
//! listed it, never by its name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::name::visible_names;
use super::repair::repair;
use crate::raw::{self, Members};

/// One tool that is shown.
#[derive(Clone, Debug)]
pub struct CatalogTool {
    /// What callers call it by.
    pub name: Arc<str>,
    /// What its server calls it.
    pub raw_name: Arc<str>,
    /// The `Tool` object, byte for byte unless `repaired` names members.
    pub tool: Arc<RawValue>,
    /// Members that were mended.
    pub repaired: Arc<[String]>,
}

/// The tools of one server.
#[derive(Clone, Debug, Default)]
pub struct ServerTools {
    /// In server order.
    pub tools: Vec<CatalogTool>,
    /// One sentence for each tool that is not shown, and what the listing itself warned about.
    pub warnings: Vec<String>,
}

impl ServerTools {
    /// Reads a server's list. `warnings` are those of the listing itself.
    pub fn read(server: &str, prefixed: bool, listed: &[Arc<RawValue>], mut warnings: Vec<String>) -> Self {
        let mut seen = HashSet::new();
        let mut sound: Vec<SoundTool> = Vec::with_capacity(listed.len());
        for (at, tool) in listed.iter().enumerate() {
            match SoundTool::read(tool) {
                Ok(sound) if !seen.insert(sound.raw_name.clone()) => {
                    warnings.push(format!("tool {at} is left out: an earlier tool has the same name"));
                }
                Ok(read) => sound.push(read),
                Err(why) => warnings.push(format!("tool {at} is left out: {why}")),
            }
        }
        let raw_names: Vec<&str> = sound.iter().map(|tool| &*tool.raw_name).collect();
        let names = visible_names(server, &raw_names, prefixed);
        let tools = names
            .into_iter()
            .zip(sound)
            .map(|(name, SoundTool { raw_name, tool, repaired })| CatalogTool {
                name: name.into(),
                raw_name,
                tool,
                repaired,
            })
            .collect();
        Self { tools, warnings }
    }
}

/// A tool that can be shown, before it has a visible name.
struct SoundTool {
    raw_name: Arc<str>,
    tool: Arc<RawValue>,
    repaired: Arc<[String]>,
}

impl SoundTool {
    fn read(tool: &Arc<RawValue>) -> Result<Self, &'static str> {
        let members = Members::of(tool).ok_or("it is not an object")?;
        let name = members.get("name").ok_or("it has no name")?;
        let raw_name = raw::text(name).ok_or("its name is not a string")?;
        if raw_name.is_empty() {
            return Err("its name is empty");
        }
        let (tool, repaired) = match repair(&members) {
            Some(repaired) => (Arc::from(repaired.tool), repaired.members.into()),
            None => (tool.clone(), Arc::from([])),
        };
        Ok(Self { raw_name: raw_name.into(), tool, repaired })
    }
}

/// Where each visible name leads: the place of its server and of the tool within it.
pub type ByName = HashMap<Arc<str>, (usize, usize)>;

/// Where each visible name leads, over all servers in document order, and a warning for each name that an earlier
/// server already took (architecture.md §9: the first wins, equal on all replicas).
pub fn merge<'a>(servers: impl IntoIterator<Item = (&'a str, &'a ServerTools)>) -> (ByName, Vec<String>) {
    let mut by_name = ByName::new();
    let mut warnings = Vec::new();
    for (at, (server, entry)) in servers.into_iter().enumerate() {
        for (index, tool) in entry.tools.iter().enumerate() {
            if by_name.contains_key(&tool.name) {
                warnings.push(format!("tool `{}` of server `{server}` is hidden by an earlier server's", tool.name));
            } else {
                by_name.insert(tool.name.clone(), (at, index));
            }
        }
    }
    (by_name, warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(tools: &[&str]) -> Vec<Arc<RawValue>> {
        tools.iter().map(|t| Arc::from(RawValue::from_string((*t).to_owned()).unwrap())).collect()
    }

    #[test]
    fn each_unusable_tool_removes_itself_with_one_warning() {
        // Contract 5.2, charset: siblings survive.
        let list = listed(&[
            r#"{"name":"good","inputSchema":{}}"#,
            r#"{"inputSchema":{}}"#,
            r#"{"name":7}"#,
            r#""text""#,
            "null",
            r#"{"name":"good","inputSchema":{}}"#,
            r#"{"name":""}"#,
            r#"{"name":"fine","inputSchema":{}}"#,
        ]);
        let read = ServerTools::read("s", true, &list, Vec::new());
        let names: Vec<&str> = read.tools.iter().map(|t| &*t.name).collect();
        assert_eq!(names, ["s_good", "s_fine"]);
        assert_eq!(read.warnings.len(), 6);
        assert!(Arc::ptr_eq(&read.tools[0].tool, &list[0]));
    }

    #[test]
    fn the_first_server_in_document_order_keeps_a_name() {
        // Contract 5.2, duplicates.
        let one = ServerTools::read("one", false, &listed(&[r#"{"name":"get","inputSchema":{}}"#]), Vec::new());
        let two = ServerTools::read("two", false, &listed(&[r#"{"name":"get","inputSchema":{}}"#]), Vec::new());
        let (by_name, warnings) = merge([("one", &one), ("two", &two)]);
        assert_eq!(by_name["get"], (0, 0));
        assert_eq!(warnings.len(), 1);
    }
}
