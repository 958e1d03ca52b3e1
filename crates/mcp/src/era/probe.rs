//! Which era a server speaks, on a transport where only asking tells (mcp.md §3.5).
//!
//! Owns the order of the questions: a complete `server/discover` first; an answer that only a modern server gives
//! settles it, anything else or silence leads to `initialize` on the same channel. Neither request is ever cancelled,
//! since a legacy server may take no notice before its handshake. What was found is remembered in `memory`.

use caribou_core::era::{Era, MODERN_VERSION, Protocol};
use caribou_ports::mcp::{CallError, OpenError};
use futures::FutureExt as _;
use serde_json::value::RawValue;
use tracing::debug;

use super::Greeting;
use super::handshake::{INITIALIZE, ShakeError, shake_hands};
use super::memory::Belief;
use super::stateless::{self, DISCOVER};
use crate::channel::{Channel, Opening, RequestExtras};
use crate::error;
use crate::wire::errors::VERSION_UNSUPPORTED;
use crate::wire::meta::{self, Meta};
use crate::wire::versions;

/// Why a server was not opened.
pub(crate) enum ProbeError {
    /// The server went away while it was being probed: some legacy servers end at a first message that is not
    /// `initialize`.
    LostByProbe(OpenError),
    /// Any other reason.
    Failed(OpenError),
}

/// What an answer to `server/discover` says.
enum Verdict {
    Modern(Greeting),
    Legacy(Option<&'static str>),
    Neither(OpenError),
    Lost(CallError),
}

/// Opens a server whose channel carries both eras.
///
/// # Errors
/// See [`ProbeError`].
pub(crate) async fn open(channel: &dyn Channel, opening: &Opening) -> Result<Greeting, ProbeError> {
    let server = &opening.server;
    match server.protocol {
        Protocol::Legacy => legacy(channel, opening, None).await,
        Protocol::Modern => modern(channel, opening).await.map_err(ProbeError::Failed),
        Protocol::Auto => {
            let greeting = match opening.eras.recall(server) {
                Some(Belief { era: Era::Legacy, version }) => remembered_legacy(channel, opening, version).await?,
                Some(Belief { era: Era::Modern, .. }) | None => probe(channel, opening).await?,
            };
            opening.eras.learn(server, greeting.era, Some(&greeting.version));
            Ok(greeting)
        }
    }
}

/// Probes and goes on in the era found.
async fn probe(channel: &dyn Channel, opening: &Opening) -> Result<Greeting, ProbeError> {
    opening.awaited.now("its answer to `server/discover`");
    let mut discovery = Box::pin(discover(channel, opening));
    let Ok(answer) = tokio::time::timeout(opening.era_probe, &mut discovery).await else {
        debug!(server = %opening.server.name, "no answer to `server/discover`; trying `initialize`");
        // The answer may only be late: a modern server that was slow to start refuses `initialize` after it.
        let shaken = legacy(channel, opening, None).await;
        return match (shaken, discovery.now_or_never().map(|late| judge(opening, late))) {
            (Err(_), Some(Verdict::Modern(greeting))) => Ok(greeting),
            (shaken, _) => shaken,
        };
    };
    match judge(opening, answer) {
        Verdict::Modern(greeting) => Ok(greeting),
        Verdict::Legacy(version) => legacy(channel, opening, version).await,
        Verdict::Neither(error) => Err(ProbeError::Failed(error)),
        Verdict::Lost(lost) => {
            Err(ProbeError::LostByProbe(error::opening(opening.server.name.as_str(), INITIALIZE, lost)))
        }
    }
}

/// Opens a server that spoke the legacy era last; if it refuses, the belief is dropped and it is probed.
async fn remembered_legacy(
    channel: &dyn Channel,
    opening: &Opening,
    version: Option<&'static str>,
) -> Result<Greeting, ProbeError> {
    opening.awaited.now("its answer to `initialize`");
    match shake_hands(channel, &opening.server, version).await {
        Ok(greeting) => Ok(greeting),
        Err(ShakeError::Refused(CallError::Rpc { .. })) => {
            opening.eras.forget(&opening.server);
            probe(channel, opening).await
        }
        Err(error) => Err(ProbeError::Failed(error.into_open_error(opening.server.name.as_str()))),
    }
}

async fn legacy(
    channel: &dyn Channel,
    opening: &Opening,
    version: Option<&'static str>,
) -> Result<Greeting, ProbeError> {
    opening.awaited.now("its answer to `initialize`");
    shake_hands(channel, &opening.server, version)
        .await
        .map_err(|error| ProbeError::Failed(error.into_open_error(opening.server.name.as_str())))
}

/// Opens a server that is said to be modern: no other era is tried.
async fn modern(channel: &dyn Channel, opening: &Opening) -> Result<Greeting, OpenError> {
    opening.awaited.now("its answer to `server/discover`");
    match judge(opening, discover(channel, opening).await) {
        Verdict::Modern(greeting) => Ok(greeting),
        Verdict::Neither(error) => Err(error),
        Verdict::Lost(lost) => Err(error::opening(opening.server.name.as_str(), DISCOVER, lost)),
        Verdict::Legacy(_) => Err(OpenError::Protocol(format!(
            "server `{}` is set to `protocol: modern` but does not speak revision {MODERN_VERSION}",
            opening.server.name
        ))),
    }
}

async fn discover(channel: &dyn Channel, opening: &Opening) -> Result<Box<RawValue>, CallError> {
    let protocol = stateless::protocol_meta(&opening.server);
    let params = meta::params(&[], Meta { protocol: &protocol, ..Meta::default() })?;
    match channel.request(DISCOVER, Some(params.clone()), RequestExtras::opening()).await {
        Err(refusal) if versions::refuses_what_it_lists(&refusal) => {
            channel.request(DISCOVER, Some(params), RequestExtras::opening()).await
        }
        answer => answer,
    }
}

/// Never hangs on one error code: whatever is not surely modern is legacy (mcp.md §3.5).
fn judge(opening: &Opening, answer: Result<Box<RawValue>, CallError>) -> Verdict {
    match answer {
        Ok(result) => match (stateless::greeting(&result), versions::of_discover_result(&result)) {
            (Some(greeting), _) => Verdict::Modern(greeting),
            (None, Some(supported)) => common(opening, &supported),
            (None, None) => Verdict::Legacy(None),
        },
        Err(error) if versions::tells_modern(&error) => match error {
            CallError::Rpc { code: VERSION_UNSUPPORTED, .. } => common(opening, &versions::listed_in(&error)),
            // It refuses the question, not the revision: modern, with nothing to say of itself.
            _ => Verdict::Modern(Greeting {
                era: Era::Modern,
                version: MODERN_VERSION.to_owned(),
                server_info: None,
                capabilities: None,
            }),
        },
        Err(
            CallError::Rpc { .. } | CallError::Malformed(_) | CallError::Unreadable(_) | CallError::TooLarge { .. },
        ) => Verdict::Legacy(None),
        Err(lost) => Verdict::Lost(lost),
    }
}

/// The way on with a server that lists its revisions, none of them our modern one.
fn common(opening: &Opening, supported: &[String]) -> Verdict {
    match versions::newest_legacy_of(supported) {
        Some(version) => Verdict::Legacy(Some(version)),
        None => Verdict::Neither(OpenError::Protocol(versions::nothing_common(
            &format!("server `{}`", opening.server.name),
            supported,
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::scripted::{Says, Scripted, opening, stdio_server};

    const HELLO: Says = Says::Result(r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}"#);
    const MODERN: Says = Says::Result(r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#);

    fn auto() -> Opening {
        opening(stdio_server(&["x"]))
    }

    async fn tried(opening: &Opening, script: impl IntoIterator<Item = Says>) -> (Arc<Scripted>, Result<Era, String>) {
        let channel = Scripted::new(script);
        let found = open(channel.as_ref(), opening).await.map(|greeting| greeting.era).map_err(|error| match error {
            ProbeError::LostByProbe(error) => format!("lost: {error}"),
            ProbeError::Failed(error) => error.to_string(),
        });
        (channel, found)
    }

    #[tokio::test]
    async fn a_discover_result_settles_the_era() {
        let (channel, era) = tried(&auto(), [MODERN]).await;
        assert_eq!(era, Ok(Era::Modern));
        assert_eq!(channel.methods(), [DISCOVER]);
    }

    #[tokio::test]
    async fn any_other_answer_leads_to_initialize() {
        for answer in [
            Says::Error(-32601, "method not found"),
            Says::Error(-32600, "initialize first"),
            Says::Result("{}"),
            Says::Result(r#"{"supportedVersions":["2025-11-25"]}"#),
        ] {
            let (channel, era) = tried(&auto(), [answer, HELLO]).await;
            assert_eq!(era, Ok(Era::Legacy));
            assert_eq!(channel.methods(), [DISCOVER, INITIALIZE, "notifications/initialized"]);
        }
    }

    #[tokio::test]
    async fn a_recognised_modern_error_never_leads_to_initialize() {
        let (channel, era) = tried(&auto(), [Says::Error(-32021, "needs a capability")]).await;
        assert_eq!(era, Ok(Era::Modern));
        assert_eq!(channel.methods(), [DISCOVER]);
        let (channel, era) = tried(&auto(), [Says::Result(r#"{"supportedVersions":["2031-01-01"]}"#)]).await;
        assert!(era.expect_err("nothing in common").contains("2031-01-01"));
        assert_eq!(channel.methods(), [DISCOVER]);
    }

    #[tokio::test]
    async fn a_refused_revision_that_is_listed_is_offered_once_more() {
        let refusal = || Says::Unsupported(r#"{"supported":["2026-07-28"],"requested":"2026-07-28"}"#);
        let (channel, era) = tried(&auto(), [refusal(), MODERN]).await;
        assert_eq!(era, Ok(Era::Modern));
        assert_eq!(channel.methods(), [DISCOVER; 2]);
        let (channel, era) = tried(&auto(), [refusal(), refusal()]).await;
        assert!(era.expect_err("refused twice").contains("refuses"));
        assert_eq!(channel.methods(), [DISCOVER; 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_leads_to_initialize() {
        let (channel, era) = tried(&auto(), [Says::Nothing, HELLO]).await;
        assert_eq!(era, Ok(Era::Legacy));
        assert_eq!(channel.methods().len(), 3);
    }

    #[tokio::test]
    async fn a_known_legacy_server_is_not_probed_until_it_refuses() {
        let opening = auto();
        tried(&opening, [Says::Error(-32601, "no"), HELLO]).await.1.expect("opened");
        let (channel, _) = tried(&opening, [HELLO]).await;
        assert_eq!(channel.methods(), [INITIALIZE, "notifications/initialized"]);
        let (channel, era) = tried(&opening, [Says::Error(-32601, "no"), MODERN]).await;
        assert_eq!(era, Ok(Era::Modern));
        assert_eq!(channel.methods(), [INITIALIZE, DISCOVER]);
        assert_eq!(opening.eras.recall(&opening.server).map(|belief| belief.era), Some(Era::Modern));
    }

    #[tokio::test]
    async fn a_server_that_ends_at_the_probe_is_told_apart() {
        let opening = auto();
        let (_, lost) = tried(&opening, [Says::Ends]).await;
        assert!(lost.expect_err("it ended").starts_with("lost: "));
        assert_eq!(opening.eras.recall(&opening.server), None);
    }

    #[tokio::test]
    async fn a_server_said_to_be_of_one_era_is_asked_for_no_other() {
        let mut server = stdio_server(&["x"]);
        server.protocol = Protocol::Legacy;
        assert_eq!(tried(&opening(server.clone()), [HELLO]).await.1, Ok(Era::Legacy));
        server.protocol = Protocol::Modern;
        let (channel, era) = tried(&opening(server), [Says::Error(-32601, "no")]).await;
        assert!(era.expect_err("not modern").contains("protocol: modern"));
        assert_eq!(channel.methods(), [DISCOVER]);
    }

    #[tokio::test]
    async fn a_refused_revision_is_offered_again_once_with_a_named_one() {
        let refusal = || Says::Error(-32602, "unsupported; have 2024-11-05, 2025-06-18");
        let (channel, era) = tried(&auto(), [Says::Error(-32601, "no"), refusal(), HELLO]).await;
        assert_eq!(era, Ok(Era::Legacy));
        let offered: Vec<String> = channel.seen.lock().unwrap().iter().map(|(_, params)| params.clone()).collect();
        assert!(offered[1].contains("\"2025-11-25\"") && offered[2].contains("\"2025-06-18\""));
        let (channel, era) = tried(&auto(), [Says::Error(-32601, "no"), refusal(), refusal()]).await;
        assert!(era.expect_err("refused twice").contains("-32602"));
        assert_eq!(channel.methods().len(), 3);
    }

    #[tokio::test]
    async fn the_revision_that_was_agreed_on_is_offered_first_the_next_time() {
        let opening = auto();
        let refusal = Says::Error(-32602, "unsupported; have 2024-11-05, 2025-06-18");
        tried(&opening, [Says::Error(-32601, "no"), refusal, HELLO]).await.1.expect("opened");
        let (channel, era) = tried(&opening, [HELLO]).await;
        assert_eq!(era, Ok(Era::Legacy));
        assert!(channel.seen.lock().unwrap()[0].1.contains("\"2025-06-18\""));
    }

    #[tokio::test]
    async fn a_revision_that_we_do_not_speak_is_an_error_that_names_it() {
        let odd = Says::Result(r#"{"protocolVersion":"1.0"}"#);
        let (_, era) = tried(&auto(), [Says::Error(-32601, "no"), odd]).await;
        assert!(era.expect_err("unknown revision").contains("\"1.0\""));
    }
}
