//! The real owner: one verb of the runtime for each request.

use caribou_core::ids::{BootId, Scope, ServerName};
use caribou_ports::BoxFuture;
use caribou_ports::peers::{ClientWord, Exchange, Nudge, PeerError, Wanted};
use caribou_runtime::{ExchangeRefused, OpenedForPeer, RunningExchange, Runtime};

use super::owner::{Happened, Owner, Running};

impl Owner for Runtime {
    fn boot(&self) -> &BootId {
        self.boot()
    }

    fn open<'a>(
        &'a self,
        to: &'a BootId,
        hops: u32,
        wanted: Wanted,
    ) -> BoxFuture<'a, Result<OpenedForPeer, PeerError>> {
        Box::pin(self.open_for_peer(to, hops, wanted))
    }

    fn begin(&self, to: &BootId, exchange: Exchange) -> Result<Box<dyn Running>, ExchangeRefused> {
        Ok(Box::new(self.exchange_for_peer(to, exchange)?))
    }

    fn close_sessions<'a>(
        &'a self,
        to: &'a BootId,
        scope: Scope,
        server: Option<ServerName>,
    ) -> BoxFuture<'a, Result<u64, PeerError>> {
        Box::pin(self.close_for_peer(to, scope, server))
    }

    fn hear(&self, to: &BootId, word: ClientWord) -> Result<bool, PeerError> {
        self.hear_for_peer(to, word)
    }

    fn nudged(&self, about: Nudge) {
        self.nudged(about);
    }
}

impl Running for RunningExchange {
    fn next(&mut self) -> BoxFuture<'_, Happened> {
        Box::pin(async {
            match self.next().await {
                Ok(progress) => Happened::Progress(progress),
                Err(answer) => Happened::Answered(answer),
            }
        })
    }

    fn cancel(self: Box<Self>) {
        (*self).cancel();
    }
}
