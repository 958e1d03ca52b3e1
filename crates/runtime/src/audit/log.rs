//! The verbs' side of the audit log: a place for a row, and its end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::failure::Code;
use caribou_core::ids::ServerName;
use caribou_ports::store::Audit;
use opentelemetry::metrics::Meter;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::entry::{Entry, OK};
use super::metrics::AuditMetrics;
use super::options::{AuditOptions, OnFull};
use super::retention;
use super::wall_clock::wall_clock_ms;
use super::writer::Writer;
use crate::error::VerbError;

/// The outcome of what its caller did not wait for.
const CANCELLED: &str = "cancelled";

/// Puts calls and changes on record. Clones write into the same log.
#[derive(Clone)]
pub(crate) struct AuditLog(Option<Arc<Open>>);

struct Open {
    store: Arc<dyn Audit>,
    buffer: mpsc::Sender<Entry>,
    on_full: OnFull,
    metrics: AuditMetrics,
    /// `None` once it was told to stop.
    writer: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
    retention: JoinHandle<()>,
}

impl Drop for Open {
    /// The writer ends with its buffer; nothing else would end this one.
    fn drop(&mut self) {
        self.retention.abort();
    }
}

impl AuditLog {
    /// The log in `store`; without one nothing is recorded.
    pub(crate) fn open(store: Option<Arc<dyn Audit>>, options: &AuditOptions, meter: &Meter) -> Self {
        Self(store.map(|store| {
            let metrics = AuditMetrics::new(meter);
            let (buffer, rows) = mpsc::channel(bounds::AUDIT_BUFFER);
            let (stop, stopped) = oneshot::channel();
            let writer = Writer { store: store.clone(), rows, metrics: metrics.clone() };
            let writer = tokio::spawn(writer.run(stopped));
            let retention = tokio::spawn(retention::keep(store.clone(), options.retention));
            let writer = Mutex::new(Some((stop, writer)));
            Arc::new(Open { store, buffer, on_full: options.on_full, metrics, writer, retention })
        }))
    }

    /// Where the rows are, if anywhere.
    pub(crate) fn store(&self) -> Option<&Arc<dyn Audit>> {
        self.0.as_ref().map(|open| &open.store)
    }

    /// Takes a place for the row of what is about to be done.
    ///
    /// # Errors
    /// `unavailable`: there is no place, and nothing may be done without.
    pub(crate) fn begin(&self, entry: Entry) -> Result<Recording, VerbError> {
        let Some(open) = &self.0 else { return Ok(Recording(None)) };
        match open.buffer.clone().try_reserve_owned() {
            Ok(place) => Ok(Recording(Some(Held { place, entry, began: Instant::now() }))),
            // The replica is stopping, and nobody would store it.
            Err(mpsc::error::TrySendError::Closed(_)) => Ok(open.unrecorded()),
            Err(mpsc::error::TrySendError::Full(_)) => match open.on_full {
                OnFull::DropAndCount => Ok(open.unrecorded()),
                OnFull::Refuse => {
                    open.metrics.refused();
                    Err(no_place())
                }
            },
        }
    }

    /// Does `work` between the begin and the end of its row.
    ///
    /// # Errors
    /// As [`AuditLog::begin`], before `work` has begun, and those of `work`.
    pub(crate) async fn around<T>(
        &self,
        entry: Entry,
        work: impl Future<Output = Result<T, VerbError>>,
    ) -> Result<T, VerbError> {
        let recording = self.begin(entry)?;
        let done = work.await;
        recording.end(&done);
        done
    }

    /// Puts on record what was done or refused already. Without a place it is counted.
    pub(crate) fn record(&self, entry: Entry) {
        if let Some(open) = &self.0
            && open.buffer.try_send(entry).is_err()
        {
            open.metrics.dropped(1);
        }
    }

    /// Stores what is buffered and ends. What cannot be stored within `AUDIT_FLUSH` is lost, which is logged and
    /// counted.
    pub(crate) async fn stop(&self) {
        let Some(open) = &self.0 else { return };
        open.retention.abort();
        let writer = open.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((stop, mut writer)) = writer else { return };
        let _ = stop.send(());
        if tokio::time::timeout(bounds::AUDIT_FLUSH, &mut writer).await.is_err() {
            writer.abort();
            let lost = open.metrics.buffered();
            open.metrics.dropped(lost);
            tracing::error!(lost, "the audit log could not be stored in time: rows are lost");
        }
    }
}

impl Open {
    fn unrecorded(&self) -> Recording {
        self.metrics.dropped(1);
        Recording(None)
    }
}

/// The row of something that is being done. Dropped without an end, it says that its caller went away.
#[must_use = "what is done has an end"]
pub(crate) struct Recording(Option<Held>);

struct Held {
    place: mpsc::OwnedPermit<Entry>,
    entry: Entry,
    began: Instant,
}

impl Recording {
    /// It turned out to be about this server.
    pub(crate) fn about(&mut self, server: &ServerName) {
        if let Some(held) = &mut self.0 {
            held.entry.server = Some(server.clone());
        }
    }

    /// It ended so.
    pub(crate) fn end<T>(mut self, done: &Result<T, VerbError>) {
        self.close(done.as_ref().map_or_else(|error| error.code.as_str(), |_| OK));
    }

    fn close(&mut self, outcome: &'static str) {
        if let Some(Held { place, entry, began }) = self.0.take() {
            place.send(Entry { at_ms: wall_clock_ms(), outcome, took: began.elapsed(), ..entry });
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.close(CANCELLED);
    }
}

fn no_place() -> VerbError {
    let detail = "nothing was done: the audit log cannot be written and its buffer is full; see to the store, or set \
                  `audit.on_full` to `drop_and_count` to go on without";
    VerbError { retry_after: Some(Duration::from_secs(1)), ..VerbError::new(Code::Unavailable, detail) }
}
