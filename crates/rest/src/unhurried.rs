//! Keeps a future that wakes itself from having its task scheduled for that.
//!
//! Owns where the wakes of one future go. Hyper's connection wakes itself for nearly every request, when its own poll
//! reads the body that it receives. To tokio that is a task that became runnable, for which it wakes a second worker:
//! two system calls and a move to a cold core, more than the whole rest of a small request. Here a wake that comes
//! during a poll stays inside: the future is polled again before the task gives way, at most [`POLLS`] times (B1).
//!
//! No wake is lost: each one is written into `state` before anybody looks whether a poll is on, and a poll only ends
//! by finding none there, in one step with its end, or by waking the task.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// Polls in a row. A connection needs two; one that always finds more to do must let others have their turn.
const POLLS: usize = 4;

/// A poll is on.
const POLLING: u8 = 1;

/// The future was woken after its last poll began.
const WOKEN: u8 = 2;

/// A future whose task is woken only from outside of its own poll.
pub(crate) struct Unhurried<F> {
    future: F,
    wakes: Arc<Wakes>,
    /// `wakes`, for the future.
    waker: Waker,
}

/// What the future is handed as its waker.
#[derive(Default)]
struct Wakes {
    /// Changed only by operations that read and write at once: a poll that begins or ends so has seen all that
    /// happened before every wake it swallows, by whatever thread.
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.fetch_or(WOKEN, Ordering::AcqRel) & POLLING == 0 {
            self.task.wake();
        }
    }
}

impl<F: Future + Unpin> Unhurried<F> {
    /// Wraps `future`.
    pub(crate) fn new(future: F) -> Self {
        let wakes = Arc::<Wakes>::default();
        Self { future, waker: wakes.clone().into(), wakes }
    }

    /// The future inside.
    pub(crate) fn inner(&mut self) -> &mut F {
        &mut self.future
    }
}

impl<F: Future + Unpin> Future for Unhurried<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<F::Output> {
        let Self { future, wakes, waker } = &mut *self;
        // First of all: whoever finds no poll on, before or after this one, must find this task.
        wakes.task.register(task.waker());
        for _ in 0..POLLS {
            wakes.state.swap(POLLING, Ordering::AcqRel);
            if let Poll::Ready(output) = Pin::new(&mut *future).poll(&mut Context::from_waker(waker)) {
                return Poll::Ready(output);
            }
            if wakes.state.compare_exchange(POLLING, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Poll::Pending;
            }
        }
        wakes.state.fetch_and(!POLLING, Ordering::AcqRel);
        task.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Counts how often a task was woken.
    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A future that wakes itself in each of its first `times` polls and never ends; with the counter of its polls.
    fn waking_itself(times: usize) -> (Unhurried<impl Future<Output = ()>>, Arc<AtomicUsize>) {
        let polls = Arc::<AtomicUsize>::default();
        let counted = polls.clone();
        let future = Unhurried::new(poll_fn(move |task| {
            if counted.fetch_add(1, Ordering::SeqCst) < times {
                task.waker().wake_by_ref();
            }
            Poll::Pending
        }));
        (future, polls)
    }

    /// Polls once; how often the future was polled and the task woken for it.
    fn polled(times: usize) -> (usize, usize) {
        let (mut future, polls) = waking_itself(times);
        let task = Arc::<Counted>::default();
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&task.clone().into())).is_pending());
        (polls.load(Ordering::SeqCst), task.0.load(Ordering::SeqCst))
    }

    #[test]
    fn a_wake_of_its_own_is_answered_by_another_poll_and_not_by_the_task() {
        assert_eq!(polled(0), (1, 0));
        assert_eq!(polled(1), (2, 0));
        assert_eq!(polled(POLLS - 1), (POLLS, 0));
    }

    #[test]
    fn a_future_that_never_rests_lets_others_have_their_turn() {
        assert_eq!(polled(usize::MAX), (POLLS, 1));
    }

    #[test]
    fn a_wake_between_two_polls_wakes_the_task_that_polled_last() {
        let (mut future, polls) = waking_itself(0);
        let [first, second] = [(); 2].map(|()| Arc::<Counted>::default());
        for task in [&first, &second] {
            assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&task.clone().into())).is_pending());
        }
        future.waker.wake_by_ref();
        assert_eq!(polls.load(Ordering::SeqCst), 2);
        assert_eq!([first, second].map(|task| task.0.load(Ordering::SeqCst)), [0, 1]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_of_another_thread_is_lost() {
        const ROUNDS: usize = 50_000;
        let seen = Arc::<AtomicUsize>::default();
        let (told, asked) = std::sync::mpsc::sync_channel::<Waker>(1);
        let raised = seen.clone();
        // For each waker that it is sent it raises the number and wakes, at any moment of the poll that sent it.
        let other = thread::spawn(move || {
            while let Ok(waker) = asked.recv() {
                raised.fetch_add(1, Ordering::Relaxed);
                waker.wake();
            }
        });
        let mut sent = 0;
        let future = Unhurried::new(poll_fn(move |task| {
            let heard = seen.load(Ordering::Relaxed);
            if heard == ROUNDS {
                return Poll::Ready(());
            }
            if heard == sent {
                sent += 1;
                told.send(task.waker().clone()).unwrap();
            }
            Poll::Pending
        }));
        tokio::time::timeout(Duration::from_secs(60), tokio::spawn(future)).await.expect("a wake was lost").unwrap();
        other.join().unwrap();
    }
}
