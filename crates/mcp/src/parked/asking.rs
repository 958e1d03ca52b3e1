//! What the server asks in the middle of one call, and whether its caller can be asked it.
//!
//! Owns the questions from the moment they come in until they are answered, the server takes them back, or the call is
//! over. Bounded in number and size (invariant B1). Which call a question belongs to is known to the channel.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caribou_core::raw::{Members, object, text};
use caribou_core::task::limits::MAX_INPUT_BYTES;
use caribou_ports::mcp::relayed::REFUSED;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Notify;

use super::abilities::{Abilities, ELICIT, Need, SAMPLE};
use crate::tasks::questions::Reply;
use crate::wire::envelope::{self, Refusal};
use crate::wire::errors::METHOD_NOT_FOUND;

/// Questions of one call that wait for an answer: more at once than people are asked.
const MAX_QUESTIONS: usize = 16;

/// What a server hears of a model that nobody lends it: the code of a person's refusal (mcp.md §2.4, sampling).
const NOT_LENT: Refusal = Refusal { code: -1, message: "nobody answers that now" };

/// What it hears of roots that nobody tells.
const NOT_TOLD: Refusal = Refusal { code: METHOD_NOT_FOUND, message: "this client has no roots" };

/// Whether a request of ours may be what a question of the server is about.
#[derive(Clone, Debug, Default)]
pub(crate) enum Asker {
    /// Servers ask nothing in the middle of it.
    #[default]
    None,
    /// They may, and whoever made it cannot be asked.
    Deaf,
    /// They may, and its caller can be asked.
    Open(Arc<Asking>),
}

impl Asker {
    /// Whether anything can be asked of whoever made the request.
    pub(crate) fn can_be_asked(&self) -> bool {
        matches!(self, Self::Open(asking) if !asking.abilities.are_none())
    }
}

/// The questions of one call.
pub(crate) struct Asking {
    abilities: Abilities,
    /// Whether a question that the caller did not declare ends the call (modern era); else it is declined.
    is_modern: bool,
    principal: String,
    inbox: Mutex<Inbox>,
    changed: Notify,
    is_parked: AtomicBool,
}

#[derive(Default)]
struct Inbox {
    open: Vec<Open>,
    asked: u32,
    lacking: Option<Need>,
}

/// A question that nobody has answered.
struct Open {
    key: String,
    method: String,
    params: Option<Box<RawValue>>,
    /// The server's id of the request.
    id: Box<RawValue>,
    reply: Reply,
}

/// What became of a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is answered later.
    Kept,
    /// Its caller cannot be asked that, or there are too many.
    Not,
}

/// The result, or the refusal, of a question that nobody answers: `word` is what becomes of an elicitation.
fn unanswered(method: &str, word: &'static str) -> Result<&'static RawValue, Refusal> {
    match method {
        ELICIT => serde_json::from_str(word).map_err(|_| NOT_TOLD),
        SAMPLE => Err(NOT_LENT),
        _ => Err(NOT_TOLD),
    }
}

/// The text that declines a question of the server at once.
pub(crate) fn declined(id: &RawValue, method: &str) -> Vec<u8> {
    envelope::response(id, unanswered(method, r#"{"action":"decline"}"#))
}

impl Asking {
    /// For a caller with these capabilities; `caller` says who that is (`ports::mcp::relayed::CALLER`). `None` = it cannot
    /// be asked anything, and a question changes nothing for it.
    pub(crate) fn of(capabilities: &RawValue, caller: Option<&RawValue>) -> Option<Arc<Self>> {
        let abilities = Abilities::of(capabilities);
        let caller = caller.and_then(Members::of);
        let member = |name: &str| caller.as_ref().and_then(|caller| caller.get(name));
        let is_modern = member("modern").is_some_and(|modern| modern.get() == "true");
        let principal = member("principal").and_then(text).unwrap_or_default().into_owned();
        if abilities.are_none() && !is_modern {
            return None;
        }
        let (inbox, changed, is_parked) = (Mutex::default(), Notify::new(), AtomicBool::new(false));
        Some(Arc::new(Self { abilities, is_modern, principal, inbox, changed, is_parked }))
    }

    /// Who made the call.
    pub(crate) fn principal(&self) -> &str {
        &self.principal
    }

    /// Whether the caller is of the modern era.
    pub(crate) fn is_modern(&self) -> bool {
        self.is_modern
    }

    /// Whether it can be asked this.
    pub(crate) fn can(&self, need: Need) -> bool {
        self.abilities.have(need)
    }

    /// Whether the call waits for its caller, and not for the server.
    pub(crate) fn is_parked(&self) -> bool {
        self.is_parked.load(Ordering::Acquire)
    }

    /// The call waits for its caller from now on, or goes on.
    pub(crate) fn park(&self, is_parked: bool) {
        self.is_parked.store(is_parked, Ordering::Release);
    }

    /// Takes a question in. `is_own` = it came on the call's own stream. On a channel that all calls share, a server may
    /// ask for roots at any time, outside of calls too (mcp.md 14.3): a call does not end by that.
    pub(crate) fn take(
        &self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        is_own: bool,
        reply: impl FnOnce() -> Reply,
    ) -> Taken {
        let Some(need) = Need::of(method, params) else { return Taken::Not };
        let mut inbox = self.inbox();
        if !self.abilities.have(need) {
            if self.is_modern && (is_own || need != Need::Roots) {
                inbox.lacking.get_or_insert(need);
                drop(inbox);
                self.changed.notify_waiters();
            }
            return Taken::Not;
        }
        let bytes = params.map_or(0, |params| params.get().len()) + id.get().len();
        if inbox.open.len() >= MAX_QUESTIONS || bytes > MAX_INPUT_BYTES {
            return Taken::Not;
        }
        inbox.asked += 1;
        let key = format!("ask-{}", inbox.asked);
        let params = params.map(ToOwned::to_owned);
        inbox.open.push(Open { key, method: method.to_owned(), params, id: id.to_owned(), reply: reply() });
        drop(inbox);
        self.changed.notify_waiters();
        Taken::Kept
    }

    /// Resolves when something is asked that is not answered.
    pub(super) async fn something(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before the look, so that nothing is missed between the two.
            changed.as_mut().enable();
            if self.is_something() {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn is_something(&self) -> bool {
        let inbox = self.inbox();
        !inbox.open.is_empty() || inbox.lacking.is_some()
    }

    /// What was asked that its caller did not declare.
    pub(super) fn lacking(&self) -> Option<Need> {
        self.inbox().lacking
    }

    /// The open questions as the member `inputRequests`: JSON text.
    pub(super) fn questions(&self) -> String {
        let inbox = self.inbox();
        let shown = inbox.open.iter().filter_map(|open| Some((open.key.as_str(), self.shown(open)?)));
        let shown: Vec<(&str, Box<RawValue>)> = shown.collect();
        object(shown.iter().map(|(key, question)| (*key, &**question)))
    }

    fn shown(&self, open: &Open) -> Option<Box<RawValue>> {
        let method = to_raw_value(&open.method).ok()?;
        let params =
            open.params.as_deref().map(|params| if self.is_modern { of_no_era(params) } else { params.to_owned() });
        let members = [("method", &*method)].into_iter().chain(params.as_deref().map(|params| ("params", params)));
        RawValue::from_string(object(members)).ok()
    }

    /// Brings the answers among `brought` to the server; what is not asked is passed over, what is not answered stays.
    pub(super) async fn answer(&self, brought: &Members<'_>) {
        let answered: Vec<(Open, &RawValue)> = {
            let mut inbox = self.inbox();
            let all = std::mem::take(&mut inbox.open);
            let mut answered = Vec::new();
            for open in all {
                match brought.get(&open.key) {
                    Some(answer) => answered.push((open, answer)),
                    None => inbox.open.push(open),
                }
            }
            answered
        };
        for (open, answer) in answered {
            let refused = Members::of(answer).and_then(|answer| answer.get(REFUSED).map(RawValue::get));
            let text = match refused {
                Some(error) => format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, open.id.get()).into_bytes(),
                None => envelope::response(&open.id, Ok(answer)),
            };
            // A server that takes no answers does not go on either: its call says so.
            let _ = (open.reply)(text).await;
        }
    }

    /// Tells the server that nobody answers what is open; `word` is what becomes of an elicitation.
    pub(super) async fn give_up(&self, word: &'static str) {
        let left = std::mem::take(&mut self.inbox().open);
        for open in left {
            let _ = (open.reply)(envelope::response(&open.id, unanswered(&open.method, word))).await;
        }
    }

    /// The server takes a request of its back.
    pub(crate) fn taken_back(&self, id: &RawValue) {
        self.inbox().open.retain(|open| open.id.get() != id.get());
    }

    /// How many questions are open.
    #[cfg(test)]
    pub(crate) fn tally(&self) -> usize {
        self.inbox().open.len()
    }

    /// The book is consistent between any two statements, so a panic elsewhere does not spoil it.
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parameters of a question without what only the legacy era knows: it names an elicitation by an id (mcp.md §1.4).
pub(super) fn of_no_era(params: &RawValue) -> Box<RawValue> {
    const LEGACY: &str = "elicitationId";
    let members = Members::of(params).filter(|members| members.get(LEGACY).is_some());
    let rest = members.map(|members| {
        object(members.0.iter().filter(|(name, _)| name != LEGACY).map(|(name, value)| (name.as_ref(), *value)))
    });
    rest.and_then(|rest| RawValue::from_string(rest).ok()).unwrap_or_else(|| params.to_owned())
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Asking({:?})", self.abilities)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::abilities::LIST_ROOTS;
    use super::*;

    pub(crate) type Told = Arc<Mutex<Vec<String>>>;

    pub(crate) fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    /// A caller that can be asked by forms.
    pub(crate) fn asking(is_modern: bool) -> Arc<Asking> {
        let caller = raw(&format!(r#"{{"principal":"ann","modern":{is_modern}}}"#));
        Asking::of(&raw(r#"{"elicitation":{}}"#), Some(&caller)).unwrap()
    }

    /// Asks something; the answer ends in the list.
    pub(crate) fn ask(asking: &Asking, id: &str, method: &str, params: &str, told: &Told) -> Taken {
        let told = told.clone();
        asking.take(&raw(id), method, Some(&raw(params)), false, || {
            Box::new(move |text| {
                told.lock().unwrap().push(String::from_utf8(text).unwrap());
                Box::pin(std::future::ready(Ok(())))
            })
        })
    }

    #[tokio::test]
    async fn what_is_answered_goes_to_the_server_and_the_rest_stays_open() {
        // mcp.md 14.7, 7.
        let (asking, told) = (asking(true), Told::default());
        ask(&asking, "7", ELICIT, r#"{"message":"?","elicitationId":"e"}"#, &told);
        ask(&asking, "\"x\"", ELICIT, r#"{"message":"!"}"#, &told);
        asking.something().await;
        let first = r#""ask-1":{"method":"elicitation/create","params":{"message":"?"}}"#;
        let second = r#""ask-2":{"method":"elicitation/create","params":{"message":"!"}}"#;
        assert_eq!(asking.questions(), format!("{{{first},{second}}}"));
        let brought = raw(r#"{"ask-1":{"action":"accept","content":{"n":1.0}},"other":{}}"#);
        asking.answer(&Members::of(&brought).unwrap()).await;
        assert_eq!(asking.questions(), format!("{{{second}}}"));
        asking.give_up(r#"{"action":"cancel"}"#).await;
        assert!(!asking.is_something());
        let answered = r#"{"jsonrpc":"2.0","id":7,"result":{"action":"accept","content":{"n":1.0}}}"#;
        assert_eq!(*told.lock().unwrap(), [answered, r#"{"jsonrpc":"2.0","id":"x","result":{"action":"cancel"}}"#]);
    }

    #[tokio::test]
    async fn an_error_of_a_client_is_one_for_the_server() {
        let (asking, told) = (asking(false), Told::default());
        ask(&asking, "7", ELICIT, "{}", &told);
        let brought = raw(r#"{"ask-1":{"io.caribou/refused":{"code":-1,"message":"no"}}}"#);
        asking.answer(&Members::of(&brought).unwrap()).await;
        assert_eq!(*told.lock().unwrap(), [r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#]);
    }

    #[tokio::test]
    async fn what_a_caller_did_not_declare_is_not_kept_and_ends_calls_of_the_modern_era() {
        // mcp.md 14.3, caller lacks the capability; §17, S14.
        let told = Told::default();
        let legacy = asking(false);
        assert_eq!(ask(&legacy, "1", SAMPLE, "{}", &told), Taken::Not);
        assert!(!legacy.is_something());
        let modern = asking(true);
        assert_eq!(ask(&modern, "1", SAMPLE, "{}", &told), Taken::Not);
        modern.something().await;
        assert_eq!(modern.lacking().map(Need::required), Some(r#"{"sampling":{}}"#));
        let rooted = asking(true);
        assert_eq!(ask(&rooted, "1", LIST_ROOTS, "{}", &told), Taken::Not);
        assert!(!rooted.is_something(), "it may belong to no call");
        rooted.take(&raw("1"), LIST_ROOTS, None, true, || unreachable!("not kept"));
        assert_eq!(rooted.lacking(), Some(Need::Roots));
        assert!(Asking::of(&raw("{}"), None).is_none());
    }

    #[test]
    fn questions_are_bounded_and_may_be_taken_back() {
        // Invariant B1.
        let (asking, told) = (asking(false), Told::default());
        let long = format!(r#"{{"message":"{}"}}"#, "x".repeat(MAX_INPUT_BYTES));
        assert_eq!(ask(&asking, "1", ELICIT, &long, &told), Taken::Not);
        let kept = (0..100).filter(|id| ask(&asking, &id.to_string(), ELICIT, "{}", &told) == Taken::Kept).count();
        assert_eq!(kept, MAX_QUESTIONS);
        for id in 0..100 {
            asking.taken_back(&raw(&id.to_string()));
        }
        assert!(!asking.is_something());
    }
}
