//! The document as it is stored, taken apart without losing a byte of what stays.
//!
//! Owns which key holds the servers; values keep their text until somebody replaces them. A text that is no document
//! is refused with its problems, so that nothing is ever written over it. Without `Debug`: it holds secrets (O3).

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fields::Field;
use super::json_text::{self, Kind, Node};
use super::report::Report;
use super::{Problem, Source};
use crate::raw::Members;

/// The two spellings of the map of servers, the first wins (contract 1.1).
pub(super) const SERVER_MAPS: [&str; 2] = ["mcpServers", "mcp_servers"];

/// Entries by name, in order.
pub(super) type Objects = Vec<(String, Map<String, Value>)>;

/// A stored document: its members and its servers, each value still text.
#[derive(Default)]
pub(super) struct Stored<'t> {
    /// The members of the top level, in order.
    pub(super) members: Vec<(Cow<'t, str>, &'t RawValue)>,
    /// Which of them holds the servers.
    pub(super) servers_at: Option<usize>,
    /// The servers, in order.
    pub(super) servers: Vec<(Cow<'t, str>, &'t RawValue)>,
}

impl<'t> Stored<'t> {
    /// Takes a text apart.
    ///
    /// # Errors
    /// It is no strict JSON, or the root or the map of servers is no object.
    pub(super) fn read(source: &Source<'t>) -> Result<Self, Vec<Problem>> {
        let text = json_text::decode(source).map_err(|problem| vec![problem])?;
        let report = Report::new(source.file, text);
        let shaped = json_text::tree(text, &report).is_some_and(|root| has_shape(&root, &report));
        let members = serde_json::from_str::<Members<'t>>(text).ok().filter(|_| shaped);
        let Some(Members(members)) = members else { return Err(report.finish()) };
        let servers_at = SERVER_MAPS.iter().find_map(|name| members.iter().position(|(key, _)| key == name));
        let servers = servers_at.and_then(|at| Members::of(members[at].1)).map(|servers| servers.0);
        Ok(Self { members, servers_at, servers: servers.unwrap_or_default() })
    }

    /// The text of one server.
    pub(super) fn server(&self, name: &str) -> Option<&'t RawValue> {
        self.servers.iter().find(|(key, _)| key == name).map(|(_, server)| *server)
    }

    /// One server, if it is an object.
    pub(super) fn server_object(&self, name: &str) -> Option<Map<String, Value>> {
        serde_json::from_str(self.server(name)?.get()).ok()
    }

    /// All servers, in order.
    ///
    /// # Errors
    /// An entry is no object; `source` is the text this was read from.
    pub(super) fn server_objects(&self, source: &Source<'t>) -> Result<Objects, Vec<Problem>> {
        let object = |(name, server): &(Cow<'t, str>, &'t RawValue)| {
            serde_json::from_str(server.get()).ok().map(|object| (name.clone().into_owned(), object))
        };
        let objects: Option<Vec<_>> = self.servers.iter().map(object).collect();
        objects.ok_or_else(|| wrong_entries(source))
    }
}

/// Whether the root and the map of servers are objects; reports what is not.
fn has_shape(root: &Node, report: &Report<'_>) -> bool {
    if !matches!(root.kind, Kind::Object(_)) {
        report.fatal(root.at, "$", format!("the document must be an object, not {}", root.kind_name()), "");
        return false;
    }
    server_map(root, report).is_none_or(|servers| servers.object().is_some())
}

fn server_map<'a>(root: &'a Node, report: &'a Report<'a>) -> Option<Field<'a>> {
    let root = Field::root(root, report).as_object()?;
    SERVER_MAPS.iter().find_map(|name| root.get(name))
}

/// The problems of entries that are no objects.
fn wrong_entries(source: &Source<'_>) -> Vec<Problem> {
    let Ok(text) = json_text::decode(source) else { return Vec::new() };
    let report = Report::new(source.file, text);
    if let Some(root) = json_text::tree(text, &report)
        && let Some(servers) = server_map(&root, &report).and_then(|servers| servers.as_object())
    {
        servers.iter().for_each(|(_, entry)| drop(entry.object()));
    }
    report.finish()
}
