//! The interceptors of one server, and one call on its way through them.
//!
//! Arguments can be megabytes, so they are not copied for each interceptor: what one replaced is kept and put back for
//! those before it when the result comes by.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds::MAX_INTERCEPTOR_HEADERS;
use caribou_core::config::{InterceptorEntry, Secret, ServerConfig};
use caribou_core::credentials::CallerHeaders;
use caribou_core::masker::Masker;
use caribou_core::raw::Members;
use caribou_ports::interceptor::{Before, InterceptedCall, Interceptor, InterceptorError, InterceptorHeader};
use serde_json::value::RawValue;

use super::refusal::{denied, not_called, not_shown, unsendable};
use crate::caller::RequestSecrets;
use crate::error::VerbError;
use crate::survived::survived;

/// An interceptor keeps its own deadline; this much later it is given up, so that one that does not cannot hold a call.
const GRACE: Duration = Duration::from_secs(1);

/// One interceptor of one server.
pub(crate) struct Link {
    name: String,
    /// Keys of the request's secrets that it is shown.
    secrets: Vec<String>,
    at_most: Duration,
    /// Keeps the credentials of its address out of messages.
    masker: Masker,
    interceptor: Arc<dyn Interceptor>,
}

impl Link {
    pub(super) fn new(entry: &InterceptorEntry, interceptor: Arc<dyn Interceptor>) -> Self {
        let at_most = entry.answer_within().saturating_add(GRACE);
        Self { name: entry.name(), secrets: entry.secrets.clone(), at_most, masker: entry.masker(), interceptor }
    }

    async fn asked<T>(&self, asking: impl Future<Output = Result<T, InterceptorError>>) -> Result<T, InterceptorError> {
        let error = |what| Err(InterceptorError(format!("interceptor `{}` {what}", self.name)));
        match tokio::time::timeout(self.at_most, survived(asking)).await {
            Ok(Some(answer)) => answer,
            Ok(None) => error("panicked"),
            Err(_) => error("does not keep its deadline"),
        }
    }

    fn malformed(&self, what: &str) -> InterceptorError {
        InterceptorError(format!("interceptor `{}` answered with {what}", self.name))
    }
}

/// The interceptors of one server, in order. The default has none.
#[derive(Default)]
pub(crate) struct Chain {
    links: Vec<Link>,
}

/// What came of asking before a call.
pub(crate) enum Flow {
    /// It is to be made, with what the passage holds.
    Go(Box<Passage>),
    /// This is its result; nothing is to be sent.
    Answered(Box<RawValue>),
}

/// One call between the two halves of its chain.
pub(crate) struct Passage {
    chain: Arc<Chain>,
    call: InterceptedCall,
    secrets: RequestSecrets,
    /// What each interceptor that was asked replaced.
    replaced: Vec<Replaced>,
}

/// What the call was before an interceptor; `None` where it changed nothing.
#[derive(Default)]
struct Replaced {
    arguments: Option<Option<Box<RawValue>>>,
    headers: Option<Vec<(String, Secret)>>,
}

impl Chain {
    pub(super) fn of(links: Vec<Link>) -> Self {
        Self { links }
    }

    /// Whether calls need not be shown to anybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Asks every interceptor in order, and lays their headers over `headers`. `call` holds neither headers nor
    /// secrets: each is shown those that it may see.
    ///
    /// # Errors
    /// The call may not be made, or somebody could not be asked about it; nothing was sent.
    pub(crate) async fn before(
        self: &Arc<Self>,
        server: &ServerConfig,
        call: InterceptedCall,
        headers: &mut CallerHeaders,
        secrets: &RequestSecrets,
    ) -> Result<Flow, VerbError> {
        let replaced = Vec::with_capacity(self.links.len());
        let mut passage = Passage { chain: self.clone(), call, secrets: secrets.clone(), replaced };
        passage.call.headers = headers.laid_over(server);
        for link in &self.links {
            passage.show_secrets(link);
            let said = link.asked(link.interceptor.before(&passage.call)).await;
            match said.map_err(|error| not_called(&passage.call, &error))? {
                Before::Proceed { arguments, headers: set } => {
                    let changed = passage.change(link, arguments)?;
                    let shown = passage.lay(link, server, set, headers)?;
                    passage.replaced.push(Replaced { arguments: changed, headers: shown });
                }
                Before::Answer(result) => {
                    let result = link.checked(result).map_err(|error| not_called(&passage.call, &error))?;
                    return passage.back(result, false).await.map(Flow::Answered);
                }
                Before::Deny(why) => {
                    return Err(denied(&link.name, &passage.call, &passage.masked(link, server, &why)));
                }
            }
        }
        Ok(Flow::Go(Box::new(passage)))
    }
}

/// Where a text stands, and how long it is: equal for the same one.
fn place(text: &RawValue) -> (usize, usize) {
    (text.get().as_ptr().addr(), text.get().len())
}

impl Link {
    /// A result that can be shown as one.
    fn checked(&self, result: Box<RawValue>) -> Result<Box<RawValue>, InterceptorError> {
        match Members::of(&result) {
            Some(_) => Ok(result),
            None => Err(self.malformed("a result that is no object")),
        }
    }
}

impl Passage {
    /// The arguments as the last interceptor left them.
    pub(crate) fn arguments(&self) -> Option<&RawValue> {
        self.call.arguments.as_deref()
    }

    /// Shows the server's result to every interceptor, the last one first.
    ///
    /// # Errors
    /// Somebody could not be asked; the call has happened.
    pub(crate) async fn after(self, result: Box<RawValue>) -> Result<Box<RawValue>, VerbError> {
        self.back(result, true).await
    }

    async fn back(mut self, mut result: Box<RawValue>, was_sent: bool) -> Result<Box<RawValue>, VerbError> {
        let chain = self.chain.clone();
        while let Some(Replaced { arguments, headers }) = self.replaced.pop() {
            let link = &chain.links[self.replaced.len()];
            if let Some(arguments) = arguments {
                self.call.arguments = arguments;
            }
            if let Some(headers) = headers {
                self.call.headers = headers;
            }
            self.show_secrets(link);
            let before = place(&result);
            let shown = link.asked(link.interceptor.after(&self.call, result)).await;
            // What the server said passes as it is (invariant W1); only another result is looked at.
            let shown =
                shown.and_then(|result| if place(&result) == before { Ok(result) } else { link.checked(result) });
            result = shown.map_err(|error| not_shown(&self.call, was_sent, &error))?;
        }
        Ok(result)
    }

    fn show_secrets(&mut self, link: &Link) {
        let listed = self.secrets.0.iter().filter(|(key, _)| link.secrets.contains(key));
        self.call.secrets = listed.cloned().collect();
    }

    /// What an interceptor says, without the secrets that it was shown or is reached by (invariant O3).
    fn masked(&self, link: &Link, server: &ServerConfig, text: &str) -> String {
        let shown = self.call.headers.iter().chain(&self.call.secrets).map(|(_, value)| value.expose());
        link.masker.mask(&server.masker.with(shown).mask(text))
    }

    /// Replaces the arguments; what they were, if they are others now.
    fn change(
        &mut self,
        link: &Link,
        arguments: Option<Box<RawValue>>,
    ) -> Result<Option<Option<Box<RawValue>>>, VerbError> {
        let Some(arguments) = arguments else { return Ok(None) };
        if Members::of(&arguments).is_none() {
            return Err(not_called(&self.call, &link.malformed("arguments that are no object")));
        }
        Ok(Some(self.call.arguments.replace(arguments)))
    }

    /// Lays headers over those of the call; what those were, if there are any.
    fn lay(
        &mut self,
        link: &Link,
        server: &ServerConfig,
        set: Vec<InterceptorHeader>,
        headers: &mut CallerHeaders,
    ) -> Result<Option<Vec<(String, Secret)>>, VerbError> {
        if set.is_empty() {
            return Ok(None);
        }
        if set.len() > MAX_INTERCEPTOR_HEADERS {
            let what = format_args!("more than {MAX_INTERCEPTOR_HEADERS} headers");
            return Err(unsendable(&link.name, &self.call, what));
        }
        for InterceptorHeader { name, value, per_call } in set {
            let laid = headers.set(server, &name, &value, per_call);
            laid.map_err(|error| unsendable(&link.name, &self.call, self.masked(link, server, &error.to_string())))?;
        }
        Ok(Some(std::mem::replace(&mut self.call.headers, headers.laid_over(server))))
    }
}
