//! What the way in asks of the replica behind it.

use caribou_core::ids::{BootId, Scope, ServerName};
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, Progress};
use caribou_ports::peers::{ClientWord, Exchange, Nudge, PeerAnswer, PeerError, Wanted};
use caribou_runtime::{ExchangeRefused, OpenedForPeer};

/// A replica that others ask for its sessions. It never forwards (invariant S1). Each request names the life that is
/// meant.
pub trait Owner: Send + Sync + 'static {
    /// This life.
    fn boot(&self) -> &BootId;

    /// Finds or opens a session that was forwarded so often.
    fn open<'a>(&'a self, to: &'a BootId, hops: u32, wanted: Wanted)
    -> BoxFuture<'a, Result<OpenedForPeer, PeerError>>;

    /// Begins a request in a session, or joins it when it is asked for again.
    ///
    /// # Errors
    /// It is not made.
    fn begin(&self, to: &BootId, exchange: Exchange) -> Result<Box<dyn Running>, ExchangeRefused>;

    /// Closes sessions; how many, when they are gone.
    fn close_sessions<'a>(
        &'a self,
        to: &'a BootId,
        scope: Scope,
        server: Option<ServerName>,
    ) -> BoxFuture<'a, Result<u64, PeerError>>;

    /// A client said something at another replica; whether it is waited for here.
    ///
    /// # Errors
    /// Another life is meant.
    fn hear(&self, to: &BootId, word: ClientWord) -> Result<bool, PeerError>;

    /// Something changed in the store. Must not block.
    fn nudged(&self, about: Nudge);
}

/// A request that runs. Dropped, its caller counts as lost: it goes on for a while, so that it can be asked for again.
pub trait Running: Send + 'static {
    /// What happens next. May be dropped and asked again.
    fn next(&mut self) -> BoxFuture<'_, Happened>;

    /// The caller has given it up.
    fn cancel(self: Box<Self>);
}

/// What happens to a request.
pub enum Happened {
    /// It reports.
    Progress(Progress),
    /// It is over. Comes once, and last.
    Answered(Result<PeerAnswer, CallError>),
}
