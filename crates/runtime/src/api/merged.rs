//! The prompts and resources of all servers as those of one: which server a name or a URI means, and lists of all.
//!
//! Each server is asked in the session of the caller's scope, a few at a time and each within the bound of a listing;
//! one that fails is absent and the others are served. A cursor holds those of the servers that have more and is marked
//! for its caller and for the servers of the moment: when there are others, it is none any more (mcp.md §17, bridge).

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use caribou_core::config::ServerConfig;
use caribou_core::failure::Code;
use caribou_core::ids::{RequestId, Scope, ServerName};
use caribou_core::namespace::{
    Label, Left, MergedCursor, Turned, raw_prompt, raw_uri, shown_item, shown_prompt, shown_uri,
};
use caribou_core::raw::{Members, elements, text};
use caribou_core::tool::visible_name;
use futures::StreamExt;
use serde_json::value::{RawValue, to_raw_value};

use super::pass_request::PassRequest;
use crate::Runtime;
use crate::caller::{Caller, RequestSecrets};
use crate::catalog::{EntryState, Snapshot};
use crate::error::VerbError;

/// Servers that are asked for a list at once: enough to be quick, few enough to leave the pool to calls.
const AT_ONCE: usize = 8;

/// What JSON-RPC calls a method that there is not.
const METHOD_NOT_FOUND: i64 = -32_601;

/// A list that is put together of those of all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergedList {
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
}

impl MergedList {
    /// Its method, the capability it belongs to, the member that holds the items, and the one that they are known by.
    fn words(self) -> [&'static str; 4] {
        match self {
            Self::Prompts => ["prompts/list", "prompts", "prompts", "name"],
            Self::Resources => ["resources/list", "resources", "resources", "uri"],
            Self::Templates => ["resources/templates/list", "resources", "resourceTemplates", "uriTemplate"],
        }
    }

    /// The member of a result that holds the items.
    pub fn member(self) -> &'static str {
        self.words()[2]
    }
}

/// One page of such a list, as a caller asks for it.
pub struct ListMerged {
    /// Which.
    pub list: MergedList,
    /// Where it goes on; `None` = from the beginning.
    pub cursor: Option<String>,
    /// Members for the `_meta` that servers see. Values are JSON text.
    pub meta: Option<Box<RawValue>>,
    /// Who asks.
    pub caller: Caller,
    /// For whom, in which thread.
    pub scope: Scope,
    /// Secrets of this request, by key.
    pub secrets: RequestSecrets,
    /// Names this request in logs and spans.
    pub request_id: RequestId,
}

/// One page.
#[derive(Debug, Default)]
pub struct MergedPage {
    /// The items in order of the servers, then server order, as they are shown.
    pub items: Vec<Box<RawValue>>,
    /// Where the list goes on; `None` = there is no more.
    pub next: Option<String>,
}

/// A server among others.
#[derive(Clone)]
pub struct AmongOthers {
    config: Arc<ServerConfig>,
}

impl AmongOthers {
    /// Its name.
    pub fn server(&self) -> &ServerName {
        &self.config.name
    }

    /// What it is called within URIs.
    pub fn label(&self) -> Label {
        Label::of(&self.config)
    }

    fn named(&self, method: &str) -> String {
        visible_name(self.config.shown_name(), &method.replace('/', "_"), true)
    }
}

impl Runtime {
    /// The servers that this user sees and that offer `capability`, in their order. Servers never seen before are
    /// waited for, but only a bounded while.
    pub async fn servers_with(&self, scope: &Scope, capability: &str) -> Vec<AmongOthers> {
        let sight = self.sight(&scope.user).await;
        // Where every server failed there is none that offers anything.
        sight.list().await.map_or_else(|_| Vec::new(), |snapshot| offering(&snapshot, capability))
    }

    /// The capabilities of every server that this user sees and that is reached, or of `server` alone. Servers never
    /// seen before are waited for, but only a bounded while.
    ///
    /// # Errors
    /// `not_found`: there is no such server for this user, or it is disabled.
    pub async fn capabilities(
        &self,
        scope: &Scope,
        server: Option<&ServerName>,
    ) -> Result<Vec<Arc<RawValue>>, VerbError> {
        if let Some(server) = server {
            return Ok(self.one_server(scope, server).await?.capabilities.into_iter().collect());
        }
        let sight = self.sight(&scope.user).await;
        // Where every server failed there is none that offers anything.
        let Ok(snapshot) = sight.list().await else { return Ok(Vec::new()) };
        let ready = snapshot.entries.iter().filter(|entry| matches!(entry.state, EntryState::Ready));
        Ok(ready.filter_map(|entry| entry.facts.as_ref()?.capabilities.clone()).collect())
    }

    /// The server of a URI that [`Runtime::list_merged`] shows, and the URI as that server knows it.
    ///
    /// # Errors
    /// `not_found`: it is none, or its server is gone.
    pub async fn server_of_uri<'u>(&self, scope: &Scope, uri: &'u str) -> Result<(AmongOthers, &'u str), VerbError> {
        let snapshot = self.sight(&scope.user).await.snapshot();
        let found = raw_uri(uri).and_then(|(label, raw)| {
            let mut enabled = snapshot.entries.iter().filter_map(|entry| entry.enabled());
            let config = enabled.find(|config| Label::of(config) == label)?.clone();
            Some((AmongOthers { config }, raw))
        });
        found.ok_or_else(|| {
            VerbError::new(Code::NotFound, "there is no resource of this URI; list them to see what there is")
        })
    }

    /// The server of this visible tool, if it is asked for the resources that results of the tool hold. One that offers
    /// none cannot be asked for them, so they stay as they are.
    pub async fn reader_of(&self, scope: &Scope, tool: &str) -> Option<AmongOthers> {
        let server = self.find_tool(tool, &scope.user).await.ok()?.target.binding.server;
        let snapshot = self.sight(&scope.user).await.snapshot();
        offering(&snapshot, "resources").into_iter().find(|among| *among.server() == server.name)
    }

    /// The server of a prompt that [`Runtime::list_merged`] shows, and its own name for it. Servers are asked for their
    /// lists only where more than one may have it.
    ///
    /// # Errors
    /// `not_found`: no server has it.
    pub async fn server_of_prompt<'n>(
        &self,
        caller: &Caller,
        scope: &Scope,
        name: &'n str,
        request_id: &RequestId,
    ) -> Result<(AmongOthers, &'n str), VerbError> {
        let servers = self.servers_with(scope, "prompts").await;
        let may_have = |server: AmongOthers| raw_prompt(&server.config.clone(), name).map(|raw| (server, raw));
        let mut may_have: Vec<_> = servers.into_iter().filter_map(may_have).collect();
        if may_have.len() < 2 {
            return may_have.pop().ok_or_else(|| no_prompt(name));
        }
        for (server, raw) in may_have {
            let mut page = Asked::first(&server);
            let mut turned = MergedCursor::default();
            loop {
                let listed = self.ask_one(&ListMerged::of(MergedList::Prompts, caller, scope, request_id), &page).await;
                let Ok(listed) = listed else { break };
                if listed.holds(raw) {
                    return Ok((server, raw));
                }
                match turned.after(vec![listed.turned]).0 {
                    Some(next) => {
                        page.cursor = next.left.first().map(|left| left.cursor.clone());
                        turned = next;
                    }
                    None => break,
                }
            }
        }
        Err(no_prompt(name))
    }

    /// One page of a list of all servers that the caller may ask.
    ///
    /// # Errors
    /// `invalid`: the cursor is none that was given to this caller, or there are other servers now. What the first
    /// server failed with, when all of them did.
    pub async fn list_merged(&self, request: ListMerged) -> Result<MergedPage, VerbError> {
        let [method, capability, _, _] = request.list.words();
        let mut servers = self.servers_with(&request.scope, capability).await;
        servers.retain(|server| request.caller.may_use(&server.named(method)));
        let about: Vec<String> = servers.iter().map(|server| server.server().to_string()).collect();
        let about: Vec<&str> = std::iter::once(method).chain(about.iter().map(String::as_str)).collect();
        let cursor = match &request.cursor {
            None => None,
            Some(sealed) => {
                let opened = self.unseal(&request.caller, &about, sealed).and_then(|text| MergedCursor::read(&text));
                let why =
                    "the cursor is none that was given here, or there are other servers now: list from the beginning";
                Some(opened.ok_or_else(|| VerbError::new(Code::Invalid, why))?)
            }
        };
        let asked = match &cursor {
            None => servers.iter().map(Asked::first).collect(),
            Some(cursor) => cursor.left.iter().filter_map(|left| Asked::again(&servers, left)).collect::<Vec<_>>(),
        };
        let request = &request;
        let answers = futures::stream::iter(asked).map(|asked| async move {
            let answer = self.ask_one(request, &asked).await;
            (asked.server, answer)
        });
        let answers: Vec<_> = answers.buffered(AT_ONCE).collect().await;
        let (mut page, mut turned) = (Sorting::new(request), Vec::new());
        let mut failed = None;
        let is_any_answered = answers.iter().any(|(_, answer)| answer.is_ok());
        for (server, answer) in answers {
            match answer {
                Ok(listed) => {
                    page.take(self, &server, &listed);
                    turned.push(listed.turned);
                }
                Err(error) => {
                    tracing::warn!(server = %server.server(), method, "a server is left out of a list: {error}");
                    failed.get_or_insert(error);
                }
            }
        }
        if let (Some(error), false) = (failed, is_any_answered) {
            return Err(error);
        }
        let (next, looping) = cursor.unwrap_or_default().after(turned);
        for server in looping {
            tracing::warn!(server, method, "its list has no end; stopped there");
        }
        let next = next.map(|next| self.seal(&request.caller, &about, &next.text()));
        Ok(MergedPage { items: page.items, next })
    }

    /// One page of one server.
    async fn ask_one(&self, request: &ListMerged, asked: &Asked) -> Result<Listed, VerbError> {
        let [method, _, member, _] = request.list.words();
        let pass = PassRequest {
            server: asked.server.server().clone(),
            method: Cow::Borrowed(method),
            params: params(asked.cursor.as_deref(), request.meta.as_deref()),
            caller: request.caller.clone(),
            scope: request.scope.clone(),
            secrets: request.secrets.clone(),
            progress: None,
            timeout: Some(self.options.list_wait),
            request_id: request.request_id.clone(),
        };
        let with = asked.cursor.clone();
        let turned = |next| Turned { server: asked.server.server().to_string(), with, next };
        let result = match self.pass_request(pass).await {
            Ok(result) => result,
            // One that has resources and no templates may not know how to list those.
            Err(error) if error.upstream.as_ref().is_some_and(|upstream| upstream.code == METHOD_NOT_FOUND) => {
                return Ok(Listed { items: Vec::new(), turned: turned(None) });
            }
            Err(error) => return Err(error),
        };
        let members = Members::of(&result);
        let items = members.as_ref().and_then(|members| elements(members.get(member)?));
        let Some(items) = items else {
            let detail = format!("server `{}` answered `{method}` with no list", asked.server.config.shown_name());
            return Err(VerbError::new(Code::UpstreamError, detail));
        };
        let next = members.as_ref().and_then(|members| text(members.get("nextCursor")?).map(Cow::into_owned));
        Ok(Listed { items: items.into_iter().map(ToOwned::to_owned).collect(), turned: turned(next) })
    }
}

impl ListMerged {
    fn of(list: MergedList, caller: &Caller, scope: &Scope, request_id: &RequestId) -> Self {
        let (caller, scope, request_id) = (caller.clone(), scope.clone(), request_id.clone());
        Self { list, cursor: None, meta: None, caller, scope, secrets: RequestSecrets::default(), request_id }
    }
}

/// A server that is asked for a page.
struct Asked {
    server: AmongOthers,
    cursor: Option<String>,
}

impl Asked {
    fn first(server: &AmongOthers) -> Self {
        Self { server: server.clone(), cursor: None }
    }

    fn again(servers: &[AmongOthers], left: &Left) -> Option<Self> {
        let server = servers.iter().find(|server| server.server().as_str() == left.server)?;
        Some(Self { server: server.clone(), cursor: Some(left.cursor.clone()) })
    }
}

/// What a server answered.
struct Listed {
    items: Vec<Box<RawValue>>,
    turned: Turned,
}

impl Listed {
    /// Whether there is a prompt of this name.
    fn holds(&self, name: &str) -> bool {
        let is_it = |item: &RawValue| {
            Members::of(item).is_some_and(|item| item.get("name").and_then(text).is_some_and(|text| text == name))
        };
        self.items.iter().any(|item| is_it(item))
    }
}

/// Puts a page together.
struct Sorting<'r> {
    request: &'r ListMerged,
    items: Vec<Box<RawValue>>,
    /// What is shown already; the first in order keeps a name.
    seen: HashSet<String>,
}

impl<'r> Sorting<'r> {
    fn new(request: &'r ListMerged) -> Self {
        Self { request, items: Vec::new(), seen: HashSet::new() }
    }

    fn take(&mut self, runtime: &Runtime, server: &AmongOthers, listed: &Listed) {
        let [_, _, _, known_by] = self.request.list.words();
        for item in &listed.items {
            let named = Members::of(item).and_then(|item| text(item.get(known_by)?).map(Cow::into_owned));
            // What has no name could not be asked for.
            let Some(named) = named else { continue };
            let shown = match self.request.list {
                MergedList::Prompts => {
                    let ruled = visible_name(server.config.shown_name(), &named, true);
                    if !self.request.caller.may_use(&ruled) || runtime.options.guardrails.judge(&ruled).is_err() {
                        continue;
                    }
                    shown_prompt(&server.config, &named)
                }
                MergedList::Resources | MergedList::Templates => shown_uri(&server.label(), &named),
            };
            if !self.seen.insert(shown.clone()) {
                let why = "it lists something twice, or by a name that is taken; the first is shown";
                tracing::warn!(server = %server.server(), "{why}");
                continue;
            }
            self.items.extend(shown_item(item, known_by, |_| shown));
        }
    }
}

fn params(cursor: Option<&str>, meta: Option<&RawValue>) -> Box<RawValue> {
    let cursor = cursor.and_then(|cursor| to_raw_value(cursor).ok());
    let members = [("cursor", cursor.as_deref()), ("_meta", meta)];
    let members = members.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)));
    RawValue::from_string(caribou_core::raw::object(members)).unwrap_or_default()
}

/// The enabled servers that said at their discovery that they offer it.
fn offering(snapshot: &Snapshot, capability: &str) -> Vec<AmongOthers> {
    let offers = |capabilities: &RawValue| {
        Members::of(capabilities).is_some_and(|all| all.get(capability).is_some_and(|one| one.get().starts_with('{')))
    };
    let ready = snapshot.entries.iter().filter(|entry| matches!(entry.state, EntryState::Ready));
    let offering =
        ready.filter(|entry| entry.facts.as_ref().and_then(|facts| facts.capabilities.as_deref()).is_some_and(offers));
    offering.filter_map(|entry| entry.enabled()).map(|config| AmongOthers { config: config.clone() }).collect()
}

fn no_prompt(name: &str) -> VerbError {
    VerbError::new(Code::NotFound, format!("there is no prompt `{name:.200}`; list them to see what there is"))
}
