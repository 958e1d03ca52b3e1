//! Looks once a second for all open pages together, and only while there is one.
//!
//! Owns the one task that looks and who hears of it. The first listener starts it, the last one to go takes it along.
//! Listeners are bounded (B1); each hears which sections changed since it last heard, so a slow one misses nothing and
//! nothing queues for it. A look that takes too long is given up and the next one begins.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use caribou_runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::look::{Marks, look};
use super::section::{BySection, Section};

/// Pages that may be open at once on one replica: a team's screens, each of which costs a connection.
const MAX_LISTENERS: usize = 64;

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// The same when something could not be asked: it may be away because it has too much to do.
const PAUSE_IN_TROUBLE: Duration = Duration::from_secs(5);

/// How long one look may take.
const LOOK: Duration = Duration::from_secs(10);

/// How often each section has changed; `None` until the first look is done.
type Changes = Option<BySection<u64>>;

/// Who looks, if somebody does.
pub(crate) struct Watch {
    seats: Arc<Semaphore>,
    looker: Mutex<Weak<Looker>>,
}

struct Looker {
    changes: watch::Receiver<Changes>,
    _task: AbortOnDropHandle<()>,
}

/// One open page.
pub(super) struct Listener {
    changes: watch::Receiver<Changes>,
    heard: Option<BySection<u64>>,
    // The looker goes with its last listener.
    _looker: Arc<Looker>,
    _seat: OwnedSemaphorePermit,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self { seats: Arc::new(Semaphore::new(MAX_LISTENERS)), looker: Mutex::default() }
    }

    /// Begins to listen; `None` = too many do.
    pub(super) fn listen(&self, runtime: &Runtime) -> Option<Listener> {
        let seat = self.seats.clone().try_acquire_owned().ok()?;
        let mut running = self.looker.lock().unwrap_or_else(PoisonError::into_inner);
        // One whose task is gone will never tell anything.
        let alive = running.upgrade().filter(|looker| looker.changes.has_changed().is_ok());
        let looker = alive.unwrap_or_else(|| {
            let (tell, changes) = watch::channel(None);
            let task = tokio::spawn(keep_looking(runtime.clone(), tell));
            let looker = Arc::new(Looker { changes, _task: AbortOnDropHandle::new(task) });
            *running = Arc::downgrade(&looker);
            looker
        });
        Some(Listener { changes: looker.changes.clone(), heard: None, _looker: looker, _seat: seat })
    }
}

impl Listener {
    /// Waits for the first look, then for changes: the sections that changed since the last time, none the first time.
    /// `None` = nothing will be told any more.
    pub(super) async fn next(&mut self) -> Option<Vec<Section>> {
        loop {
            let now = *self.changes.wait_for(|changes| *changes != self.heard && changes.is_some()).await.ok()?;
            let (Some(now), before) = (now, self.heard) else { continue };
            self.heard = Some(now);
            let Some(before) = before else { return Some(Vec::new()) };
            let changed =
                Section::ALL.into_iter().filter(|section| now[*section as usize] != before[*section as usize]);
            return Some(changed.collect());
        }
    }
}

async fn keep_looking(runtime: Runtime, tell: watch::Sender<Changes>) {
    let mut last = Marks::default();
    loop {
        let seen = timeout(LOOK, look(&runtime)).await;
        let is_troubled = seen.as_ref().map_or(true, |marks| marks.is_troubled);
        let changed = seen.map_or_else(|_| [false; Section::ALL.len()], |seen| differ(&mut last, &seen));
        tell.send_if_modified(|changes| count(changes, changed));
        sleep(if is_troubled { PAUSE_IN_TROUBLE } else { PAUSE }).await;
    }
}

/// Where `seen` differs from what was last seen, which it becomes. What could not be read stays as it was.
fn differ(last: &mut Marks, seen: &Marks) -> BySection<bool> {
    let mut changed = [false; Section::ALL.len()];
    for ((changed, last), seen) in changed.iter_mut().zip(&mut last.of).zip(&seen.of) {
        if seen.is_some() && seen != last {
            *changed = true;
            *last = *seen;
        }
    }
    changed
}

/// Counts the changes; whether there is something to tell. The first time there is.
fn count(changes: &mut Changes, changed: BySection<bool>) -> bool {
    let Some(counts) = changes else {
        *changes = Some([0; Section::ALL.len()]);
        return true;
    };
    for (count, changed) in counts.iter_mut().zip(changed) {
        *count += u64::from(changed);
    }
    changed.contains(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(of: BySection<Option<u64>>) -> Marks {
        Marks { of, is_troubled: false }
    }

    #[test]
    fn what_cannot_be_read_is_no_change_and_what_comes_back_the_same_is_none_either() {
        let mut last = marks([Some(1); 7]);
        let mut seen = last;
        seen.of[2] = None;
        seen.of[3] = Some(2);
        assert_eq!(differ(&mut last, &seen), [false, false, false, true, false, false, false]);
        assert_eq!(differ(&mut last, &marks(seen.of.map(|mark| mark.or(Some(1))))), [false; 7]);
    }

    #[test]
    fn a_listener_is_told_of_each_change_once() {
        let mut changes = None;
        assert!(count(&mut changes, [true; 7]), "the first look is told, whatever it saw");
        assert_eq!(changes, Some([0; 7]));
        assert!(!count(&mut changes, [false; 7]));
        let mut changed = [false; 7];
        changed[1] = true;
        assert!(count(&mut changes, changed));
        assert_eq!(changes, Some([0, 1, 0, 0, 0, 0, 0]));
    }

    /// A listener beside a looker that only the test moves.
    fn listener(watch: &Watch, changes: watch::Receiver<Changes>) -> Listener {
        let task = AbortOnDropHandle::new(tokio::spawn(std::future::pending()));
        let looker = Arc::new(Looker { changes: changes.clone(), _task: task });
        *watch.looker.lock().unwrap() = Arc::downgrade(&looker);
        let seat = watch.seats.clone().try_acquire_owned().unwrap();
        Listener { changes, heard: None, _looker: looker, _seat: seat }
    }

    fn is_looking(watch: &Watch) -> bool {
        watch.looker.lock().unwrap().strong_count() > 0
    }

    #[tokio::test]
    async fn a_slow_listener_hears_of_all_that_changed_meanwhile_and_the_last_one_takes_the_looker_along() {
        let watch = Watch::new();
        let (tell, changes) = watch::channel(None);
        let mut listener = listener(&watch, changes);
        tell.send_replace(Some([0; 7]));
        assert_eq!(listener.next().await, Some(Vec::new()));
        tell.send_replace(Some([0, 1, 0, 0, 0, 0, 0]));
        tell.send_replace(Some([0, 1, 0, 2, 0, 0, 0]));
        assert_eq!(listener.next().await, Some(vec![Section::Servers, Section::Tasks]));
        assert!(is_looking(&watch));
        drop(tell);
        assert_eq!(listener.next().await, None);
        drop(listener);
        assert!(!is_looking(&watch));
        assert_eq!(watch.seats.available_permits(), MAX_LISTENERS);
    }
}
