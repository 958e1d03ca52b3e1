//! One refresh of a chain in memory: presents what it says, and commits what comes of it before anybody hears of it.
//!
//! Owns what each outcome means for the chain: only `invalid_grant` ends it; a lost answer leaves the token as it is,
//! to be presented once more, and is remembered (architecture.md §9, refresh errors). Messages name the server and what
//! to do, and hold no secret (O3).

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds::TOKEN_REQUEST;
use caribou_core::oauth::form;
use caribou_core::oauth::refusal::{ends_chain, needs_person};
use caribou_ports::access_token::{AccessToken, NoToken};
use caribou_ports::token_endpoint::{TokenAnswer, TokenRequest, TokenRequestError};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::chain::MemoryChain;
use super::connection::Desk;
use super::patience::patiently;

/// Asks for the next token. Runs to its end whoever waits for it.
pub(super) async fn refresh(desk: Arc<Desk>, chain: MemoryChain) -> Result<AccessToken, NoToken> {
    let turn = chain.begin().await;
    if turn.is_ended() {
        return Err(ended(&desk, "it was refused before"));
    }
    if let Err(lacking) = form(&desk.oauth, turn.refresh_token().as_ref()) {
        let message = format!("server `{}` has no access token: {lacking}", desk.server);
        return Err(NoToken { message, needs_person: true });
    }
    let request = TokenRequest {
        server: desk.server.clone(),
        oauth: desk.oauth.clone(),
        refresh_token: turn.refresh_token(),
        guarded: desk.guarded,
        still_held: None,
    };
    let asked_at = Instant::now();
    let asked = async {
        patiently(TOKEN_REQUEST, desk.endpoint.request(request)).await.unwrap_or_else(|| {
            let seconds = TOKEN_REQUEST.as_secs();
            Err(TokenRequestError::Unknown(format!("the token endpoint was given up after {seconds} s")))
        })
    };
    let answer = in_span(&desk, asked).await;
    desk.metrics.refreshed(&desk.server, outcome(&answer));
    match answer {
        Ok(TokenAnswer { header, expires_in, refresh_token }) => {
            tracing::info!(server = %desk.server, expires_in, rotated = refresh_token.is_some(), "access token refreshed");
            turn.given(refresh_token);
            Ok(desk.slot.put(header, asked_at, Duration::from_secs(expires_in)))
        }
        Err(error) => {
            tracing::warn!(server = %desk.server, "no access token: {error}");
            let is_lost = turn.is_lost();
            match &error {
                TokenRequestError::Refused { error: code, message }
                    if ends_chain(desk.oauth.grant, code.as_deref()) =>
                {
                    turn.end();
                    let lost = "; an earlier answer was lost, and maybe the next refresh token with it";
                    return Err(ended(&desk, &format!("{message}{}", if is_lost { lost } else { "" })));
                }
                TokenRequestError::Unknown(_) => turn.lost(),
                _ => {}
            }
            let needs_person = match &error {
                TokenRequestError::Refused { error: code, .. } => needs_person(code.as_deref()),
                _ => false,
            };
            let message = format!("server `{}` has no access token: {error}", desk.server);
            Err(NoToken { message, needs_person })
        }
    }
}

/// The error of a chain that is at its end (contract 7.5, invalid_grant).
pub(super) fn ended(desk: &Desk, why: &str) -> NoToken {
    let message = format!(
        "server `{}` has no access token: its refresh token is not valid any more ({why}); sign in again and set the \
         new one as its `oauth.refresh_token`",
        desk.server
    );
    NoToken { message, needs_person: true }
}

/// Asks within a span that tells the server and the outcome, and nothing of any token (invariant O3).
pub(super) async fn in_span(
    desk: &Desk,
    asked: impl Future<Output = Result<TokenAnswer, TokenRequestError>>,
) -> Result<TokenAnswer, TokenRequestError> {
    let span = tracing::info_span!(
        "refresh_token",
        otel.kind = "client",
        otel.status_code = tracing::field::Empty,
        server = %desk.server,
        outcome = tracing::field::Empty,
    );
    let answer = asked.instrument(span.clone()).await;
    span.record("outcome", outcome(&answer));
    if answer.is_err() {
        span.record("otel.status_code", "ERROR");
    }
    answer
}

/// The word of the metric.
pub(super) fn outcome(answer: &Result<TokenAnswer, TokenRequestError>) -> &'static str {
    match answer {
        Ok(_) => "given",
        Err(TokenRequestError::NotSent(_)) => "not_sent",
        Err(TokenRequestError::Refused { .. }) => "refused",
        Err(TokenRequestError::Unusable { .. }) => "unusable",
        Err(TokenRequestError::Unknown(_)) => "unknown",
    }
}
