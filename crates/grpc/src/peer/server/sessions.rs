//! `caribou.peer.v1.SessionService`. Each method: which life is meant, one question to the owner.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds::MAX_MESSAGE_BYTES;
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Scope, ServerName, ThreadId, UserId};
use caribou_core::session::NotTaken;
use caribou_ports::mcp::CallError;
use caribou_ports::peers::PeerError;
use caribou_proto::peer::v1;
use caribou_proto::peer::v1::session_service_server::SessionService;
use caribou_proto::peer::v1::up;
use caribou_runtime::ExchangeRefused;
use tokio::time::timeout;
use tonic::{Request, Response, Status, Streaming};

use super::answering::{self, Downs};
use super::owner::Owner;
use crate::peer::{convert, status};

/// The version of the language that both halves speak.
pub(in crate::peer) const PROTOCOL: u32 = 1;

/// The largest message: arguments as large as one MCP message, or a list of tools, and room for what stands beside
/// them.
pub(in crate::peer) const LARGEST_MESSAGE: usize = MAX_MESSAGE_BYTES + 1024 * 1024;

/// How long the first message of an exchange may take: it is sent together with its headers.
const FIRST_MESSAGE: Duration = Duration::from_secs(5);

/// With less time than this a request is not begun: its answer would come too late (durability.md §6).
const LEAST_TIME: Duration = Duration::from_millis(20);

/// The method whose caller goes on speaking after its first message.
const EXCHANGE: &str = "/caribou.peer.v1.SessionService/Exchange";

/// Whether the messages of a request to `path` come for as long as it lasts.
pub(crate) fn is_exchange(path: &str) -> bool {
    path == EXCHANGE
}

/// The sessions that live here.
pub(super) struct Sessions {
    pub(super) owner: Arc<dyn Owner>,
}

impl Sessions {
    fn is_meant(&self, boot: &str) -> Result<(), Status> {
        match boot == self.owner.boot().as_str() {
            true => Ok(()),
            false => Err(status::refused(NotTaken::WrongBoot.into())),
        }
    }
}

fn too_late() -> Status {
    let detail = "the time of the request is over".to_owned();
    status::refused(PeerError::Failed { code: Code::Timeout, detail, retry_after: None })
}

#[tonic::async_trait]
impl SessionService for Sessions {
    type ExchangeStream = Downs;

    async fn hello(&self, request: Request<v1::HelloRequest>) -> Result<Response<v1::HelloResponse>, Status> {
        let asked = request.into_inner();
        self.is_meant(&asked.to_boot)?;
        let (from, version) = (asked.from_boot, asked.version);
        tracing::debug!(from, version, protocol = asked.protocol, "another replica connected");
        let (boot, version) = (self.owner.boot().to_string(), env!("CARGO_PKG_VERSION").to_owned());
        Ok(Response::new(v1::HelloResponse { boot, protocol: PROTOCOL, version }))
    }

    async fn open(&self, request: Request<v1::OpenRequest>) -> Result<Response<v1::OpenResponse>, Status> {
        let request = request.into_inner();
        let (to, hops) = (BootId::new(&*request.to_boot), request.hops);
        let wanted = convert::wanted(request).map_err(|error| status::malformed(&error.to_string()))?;
        let within = wanted.within;
        if within < LEAST_TIME {
            return Err(too_late());
        }
        let opened = timeout(within, self.owner.open(&to, hops, wanted)).await.map_err(|_| too_late())?;
        let opened = opened.map_err(status::refused)?;
        let facts = Some(convert::facts_message(&opened.facts));
        Ok(Response::new(v1::OpenResponse { epoch: opened.epoch.0, facts }))
    }

    async fn exchange(&self, request: Request<Streaming<v1::Up>>) -> Result<Response<Downs>, Status> {
        let mut ups = request.into_inner();
        let first = timeout(FIRST_MESSAGE, ups.message()).await;
        let Ok(Ok(Some(v1::Up { what: Some(up::What::Request(request)) }))) = first else {
            return Err(status::malformed("an exchange begins with its request"));
        };
        let to = BootId::new(&*request.to_boot);
        // Whoever runs the request puts its own listener in the place of this one.
        let exchange = convert::exchange(request, Arc::new(|_| {}));
        let exchange = exchange.map_err(|error| status::malformed(&error.to_string()))?;
        let (is_again, within) = (exchange.is_again, exchange.within);
        if within < LEAST_TIME && !is_again {
            return Ok(Response::new(answering::refused(convert::failed(CallError::NotSent(
                "the time of the call was over before it began".to_owned(),
            )))));
        }
        Ok(Response::new(match self.owner.begin(&to, exchange) {
            Ok(running) => answering::downs(running, ups).await,
            Err(refused) => answering::refused(not_begun(refused, is_again)),
        }))
    }

    async fn close_sessions(
        &self,
        request: Request<v1::CloseSessionsRequest>,
    ) -> Result<Response<v1::CloseSessionsResponse>, Status> {
        let v1::CloseSessionsRequest { to_boot, user, thread, server } = request.into_inner();
        let (to, scope) = (BootId::new(to_boot), Scope { user: UserId::new(user), thread: ThreadId::new(thread) });
        let server = (!server.is_empty()).then(|| ServerName::new(server));
        let closed = self.owner.close_sessions(&to, scope, server).await.map_err(status::refused)?;
        Ok(Response::new(v1::CloseSessionsResponse { closed }))
    }

    async fn hear(&self, request: Request<v1::HearRequest>) -> Result<Response<v1::HearResponse>, Status> {
        let request = request.into_inner();
        let to = BootId::new(&*request.to_boot);
        let word = convert::client_word(request).map_err(|error| status::malformed(&error.to_string()))?;
        let heard = self.owner.hear(&to, word).map_err(status::refused)?;
        Ok(Response::new(v1::HearResponse { heard }))
    }

    async fn nudge(&self, request: Request<v1::NudgeRequest>) -> Result<Response<v1::NudgeResponse>, Status> {
        let request = request.into_inner();
        self.is_meant(&request.to_boot)?;
        // It is only a hint: one that we have no word for is passed over.
        if let Some(nudge) = convert::nudged(request) {
            self.owner.nudged(nudge);
        }
        Ok(Response::new(v1::NudgeResponse {}))
    }
}

/// Why a request was not begun. What is only joined and finds no room may have run before (invariant S2).
fn not_begun(refused: ExchangeRefused, is_again: bool) -> v1::Failed {
    match refused {
        ExchangeRefused::NotTaken(why) => {
            let kind = v1::failed::Kind::NotTaken.into();
            v1::Failed { kind, refusal: Some(status::not_taken(why)), ..Default::default() }
        }
        ExchangeRefused::Busy(detail) if !is_again => convert::failed(CallError::Busy(detail)),
        ExchangeRefused::Busy(_) | ExchangeRefused::UnknownCall => convert::unknown_call(),
    }
}

#[cfg(test)]
mod tests {
    use caribou_proto::peer::v1::failed::Kind;
    use caribou_proto::peer::v1::session_service_server::SERVICE_NAME;

    use super::*;

    #[test]
    fn only_an_exchange_may_take_its_time() {
        assert!(is_exchange(&format!("/{SERVICE_NAME}/Exchange")) && !is_exchange(&format!("/{SERVICE_NAME}/Open")));
    }

    #[test]
    fn busy_is_no_answer_to_what_may_have_run() {
        // Invariant S2.
        let busy = || ExchangeRefused::Busy("full".to_owned());
        assert_eq!(not_begun(busy(), false).kind(), Kind::Busy);
        assert_eq!(not_begun(busy(), true).kind(), Kind::UnknownCall);
    }
}
