//! The stream on which a server of the legacy era tells and asks on its own, opened anew whenever it ends.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use http::{HeaderValue, Method};
use tokio::time::{sleep, timeout};

use super::bridge::Bridge;
use crate::transport::event_stream::EventStream;
use crate::transport::http::is_event_stream;
use crate::wire::headers::LAST_EVENT_ID;

/// How long the head of the stream may take.
const HEAD: Duration = Duration::from_secs(30);

/// The pause before it is opened again; it doubles while the server is away.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What a look for the stream found.
enum Heard {
    /// It was open, and ended; the server may have said how long to wait.
    Ended(Option<Duration>),
    /// The server is away.
    Away,
    /// It offers none, or none in this session.
    Nothing,
}

impl Bridge {
    /// Listens in the session of this moment, and no longer in one before it.
    pub(super) fn listen(self: &Arc<Self>) {
        let ours = self.over.child_token();
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *listening, ours.clone()).cancel();
        drop(listening);
        let bridge = Arc::clone(self);
        tokio::spawn(async move { ours.run_until_cancelled(bridge.follow()).await });
    }

    async fn follow(&self) {
        let mut place = None;
        let mut pause = FIRST_PAUSE;
        loop {
            match self.hear(&mut place).await {
                Heard::Nothing => return,
                Heard::Ended(named) => pause = named.unwrap_or(FIRST_PAUSE).clamp(FIRST_PAUSE, LONGEST_PAUSE),
                Heard::Away => pause = pause.saturating_mul(2).min(LONGEST_PAUSE),
            }
            sleep(pause).await;
        }
    }

    async fn hear(&self, place: &mut Option<HeaderValue>) -> Heard {
        let live = self.live();
        let mut headers = live.get(&self.link);
        if let Some(place) = place {
            headers.insert(LAST_EVENT_ID, place.clone());
        }
        let response = match timeout(HEAD, self.link.send(Method::GET, &live.url, headers, None)).await {
            Ok(Ok(reached)) => reached.response,
            Ok(Err(_)) | Err(_) => return Heard::Away,
        };
        let status = response.status();
        if !(status.is_success() && is_event_stream(response.headers())) {
            // Too many, or away behind something that is not: that may change. A session that is gone is opened again
            // by the next request.
            let may_come = status.is_server_error() && status != 501 || matches!(status.as_u16(), 408 | 425 | 429);
            return if may_come { Heard::Away } else { Heard::Nothing };
        }
        let mut stream = EventStream::new(response, self.limit);
        // Open for as long as the session: a connection that is dead is noticed by its signs of life.
        while let Ok(Some(event)) = stream.next().await {
            if event.is_message() {
                self.deliver(&event.data, None).await;
            }
        }
        *place = stream.last_id().and_then(|id| HeaderValue::from_str(id).ok()).or_else(|| place.take());
        Heard::Ended(stream.retry())
    }
}
