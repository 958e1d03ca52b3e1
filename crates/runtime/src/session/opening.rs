//! Bringing one session up: here, in the right order with the row that says who holds it, or in the replica where it
//! lives.

use std::sync::Arc;

use caribou_core::bounds;
use caribou_core::config::{Secret, Transport};
use caribou_core::ids::Epoch;
use caribou_ports::mcp::{Credentials, OpenError, OpenSession, Session};
use caribou_ports::peers::{OpenedThere, PeerAddress, PeerError, Wanted};
use caribou_ports::workspace::ThreadFolder;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout};

use super::actor::{Birth, Unopened, leave};
use super::handle::{Handle, NotOpened};
use super::home::Home;

/// Brings the session up where it lives.
pub(super) async fn open(birth: Birth, abandoned: watch::Receiver<bool>) -> Result<Arc<dyn Session>, Unopened> {
    match birth.handle.home.clone() {
        Home::There { peer, epoch } => join_there(&birth, peer, epoch, abandoned).await,
        // A child is started only by whoever holds its session (invariant S3).
        Home::Here if birth.handle.server.transport.owns_process() => {
            let turn = turn(&birth, &abandoned).await?;
            let taken = birth.homes.take(&birth.handle.key).await?;
            birth.handle.hold(taken);
            let opened = match birth.homes.keep_files(&birth.handle.key).await {
                Ok(()) => bring_up(&birth, abandoned, None).await.map_err(Unopened::from),
                Err(why) => Err(why.into()),
            };
            drop(turn);
            if opened.is_err() {
                // Nothing is left of what was half made.
                leave(&birth.homes, &birth.handle);
            }
            opened
        }
        // Whether a remote server keeps a session is known only now.
        Home::Here => {
            let resume = birth.homes.resumable(&birth.handle).await;
            let session = bring_up(&birth, abandoned, resume).await?;
            if session.facts().stateful {
                match birth.homes.take(&birth.handle.key).await {
                    Ok(taken) => birth.handle.hold(taken),
                    Err(why) => {
                        // Somebody else may have gone on with the same one.
                        if session.is_resumed() {
                            session.leave().await
                        } else {
                            session.close().await
                        }
                        return Err(why.into());
                    }
                }
                birth.homes.keep(&birth.handle, &*session).await;
                if session.is_resumed() {
                    birth.homes.went_on(&birth.handle).await;
                }
            }
            Ok(session)
        }
    }
}

/// Asks its owner for a session of another replica, or has it opened there.
async fn join_there(
    birth: &Birth,
    peer: PeerAddress,
    epoch: Option<Epoch>,
    abandoned: watch::Receiver<bool>,
) -> Result<Arc<dyn Session>, Unopened> {
    let Some(peers) = birth.homes.peers() else { return Err(Unopened::Not(NotOpened::Moved)) };
    let Handle { key, headers, .. } = &*birth.handle;
    let left = birth.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let within = left.unwrap_or(bounds::CALL_MAX);
    let headers = headers.as_deref().unwrap_or_default().to_vec();
    let opened = peers.open(peer, Wanted { key: key.clone(), headers, epoch, within });
    let opened = tokio::select! {
        opened = timeout(within, opened) => opened,
        () = given_up(abandoned) => return Err(OpenError::Abandoned.into()),
    };
    match opened {
        Ok(Ok(OpenedThere { session, epoch })) => {
            birth.handle.at(epoch, false);
            Ok(session)
        }
        Ok(Err(PeerError::Failed { code, detail, retry_after })) => {
            Err(Unopened::Not(NotOpened::There { code, detail, retry_after }))
        }
        Ok(Err(error @ (PeerError::NotTaken(_) | PeerError::Unreachable(_)))) => {
            tracing::debug!(session = %key, "not joined: {error}");
            Err(Unopened::Not(NotOpened::Moved))
        }
        Err(_) => Err(queued(birth, "the replica that holds it did not answer").into()),
    }
}

/// Waits for its turn to start a child.
async fn turn(birth: &Birth, abandoned: &watch::Receiver<bool>) -> Result<OwnedSemaphorePermit, OpenError> {
    let turn = tokio::select! {
        turn = birth.spawns.clone().acquire_owned() => turn.ok(),
        () = given_up(abandoned.clone()) => return Err(OpenError::Abandoned),
        () = at(birth.deadline) => None,
    };
    turn.ok_or_else(|| queued(birth, "it waited for its turn all the time"))
}

/// Brings the session up here, within what is left of the deadline.
async fn bring_up(
    birth: &Birth,
    abandoned: watch::Receiver<bool>,
    resume: Option<Secret>,
) -> Result<Arc<dyn Session>, OpenError> {
    // A server is told that its tasks are followed only where they are.
    let is_followed = birth.outside.tasks.is_some();
    let configured = &birth.handle.server;
    let server = if is_followed { configured.clone() } else { configured.without_native_tasks() };
    let left = birth.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let request = OpenSession {
        label: birth.handle.key.to_string(),
        folder: folder(birth).await?,
        timeout: left,
        abandoned: Box::pin(given_up(abandoned)),
        credentials: Credentials {
            tokens: birth.chains.of(&server, server.is_personal())?,
            is_token_optional: birth.handle.key.scope.is_catalog(),
            headers: birth.handle.headers.as_deref().unwrap_or_default().to_vec(),
        },
        watch_lists: birth.handle.key.scope.is_catalog() || server.transport.owns_process(),
        events: birth.events.clone(),
        resume,
        server,
    };
    match birth.outside.connector.open(request).await {
        Err(OpenError::Timeout { message })
            if left < birth.handle.server.session_init_timeout.map(|bound| bound / 2) =>
        {
            Err(queued(birth, &message))
        }
        opened => opened,
    }
}

/// The error of a bring-up whose time went by before it could begin.
fn queued(birth: &Birth, what: &str) -> OpenError {
    OpenError::Queued(format!(
        "too many servers start at once for server `{}` to be ready within its session_init_timeout: {what}",
        birth.handle.server.name
    ))
}

/// The folder of the thread, for a child of one. The catalogue's children belong to no thread.
///
/// A child goes on without a folder for temporary files (contract 4.6), but not without the one that keeps its files
/// apart from those of other threads (invariant P1).
async fn folder(birth: &Birth) -> Result<Option<ThreadFolder>, OpenError> {
    let Handle { key, server, .. } = &*birth.handle;
    let (Some(folders), Transport::Stdio(stdio)) = (&birth.outside.folders, &server.transport) else { return Ok(None) };
    if key.scope.is_catalog() {
        return Ok(None);
    }
    let Ok(prepared) = tokio::time::timeout(bounds::FILES_LOOK, folders.prepare(&key.scope)).await else {
        return Err(OpenError::NotStartable(
            "the folder of its thread cannot be made: the disk does not answer".into(),
        ));
    };
    let has_own = stdio.cwd.is_some() && stdio.thread_files.is_empty();
    if let Err(error) | Ok(ThreadFolder { temp: Err(error), .. }) = &prepared {
        tracing::warn!(session = %key, %error, "a child has no temporary folder of its own");
    }
    match prepared {
        Ok(folder) => Ok(Some(folder)),
        Err(_) if has_own => Ok(None),
        Err(error) => Err(OpenError::NotStartable(error.to_string())),
    }
}

async fn given_up(mut abandoned: watch::Receiver<bool>) {
    // An error means that the actor itself is gone: nobody wants the session then either.
    let _ = abandoned.wait_for(|abandoned| *abandoned).await;
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
