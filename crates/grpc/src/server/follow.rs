//! The changes of one task as a stream, until it has ended, the replica stops, or the stream is too old.

use std::pin::Pin;

use caribou_proto::v1;
use caribou_runtime::FollowedTask;
use futures::{Stream, stream};
use tokio::sync::watch;
use tonic::Status;

use crate::{convert, status};

/// What happens to one task.
pub(super) type Changes = Pin<Box<dyn Stream<Item = Result<v1::TaskChange, Status>> + Send>>;

/// Tells all of them; nothing when there is nothing to follow any more.
pub(super) fn changes(followed: Option<FollowedTask>, stopped: watch::Receiver<()>) -> Changes {
    Box::pin(stream::unfold((followed, stopped), |(followed, mut stopped)| async move {
        let mut followed = followed?;
        let next = tokio::select! {
            next = followed.next() => next?,
            _ = stopped.changed() => return None,
        };
        Some((next.map(convert::change).map_err(status::of), (Some(followed), stopped)))
    }))
}
