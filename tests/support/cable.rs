//! A TCP cable between two parts of a test that can be pulled, slowed and held, since nothing else delays here.
//!
//! It has an address from the beginning and is led to its far end later, as for a process that chooses its port when it
//! starts. What a pulled cable carried is lost at once for both ends; what a held one carries waits.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// What is read in one piece.
const PIECE: usize = 64 * 1024;

/// Pieces under way in one direction.
const UNDER_WAY: usize = 256;

/// How the cable is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Connections break, and new ones break at once.
    pub is_cut: bool,
    /// Nothing passes; nothing breaks.
    pub is_held: bool,
    /// How much later everything arrives, in each direction.
    pub delay: Duration,
    /// Nothing more passes towards the far end, which is told so; answers do.
    pub is_half_closed: bool,
}

/// A cable. Pulled for good when dropped.
#[derive(Debug)]
pub struct Cable {
    near: SocketAddr,
    far: Arc<Mutex<Option<SocketAddr>>>,
    condition: watch::Sender<Condition>,
    carried: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Cable {
    /// A sound one that leads nowhere yet.
    pub async fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has a free port");
        let near = listener.local_addr().expect("a bound listener has an address");
        let far = Arc::<Mutex<Option<SocketAddr>>>::default();
        let (condition, watched) = watch::channel(Condition::default());
        let carried = Arc::<AtomicU64>::default();
        let (leads, counts) = (Arc::clone(&far), Arc::clone(&carried));
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let far = *leads.lock().unwrap_or_else(PoisonError::into_inner);
                tokio::spawn(connect(stream, far, watched.clone(), Arc::clone(&counts)));
            }
        });
        Self { near, far, condition, carried, accepting }
    }

    /// The near end: what is connected to.
    pub fn address(&self) -> SocketAddr {
        self.near
    }

    /// Connections from now on end there.
    pub fn lead_to(&self, far: SocketAddr) {
        *self.far.lock().unwrap_or_else(PoisonError::into_inner) = Some(far);
    }

    /// From now on it is so.
    pub fn set(&self, condition: Condition) {
        self.condition.send_replace(condition);
    }

    /// Breaks what it carries and whatever is connected until it is mended.
    pub fn cut(&self) {
        self.set(Condition { is_cut: true, ..Condition::default() });
    }

    /// Lets nothing pass, as a network does that loses everything, until it is mended.
    pub fn hold(&self) {
        self.set(Condition { is_held: true, ..Condition::default() });
    }

    /// Makes it sound again. What was cut stays broken; what was held arrives.
    pub fn mend(&self) {
        self.set(Condition::default());
    }

    /// How many bytes have passed, in both directions together.
    pub fn carried(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

/// Waits until the cable is so; `None` = it was dropped.
async fn until(mut watched: watch::Receiver<Condition>, is: impl FnMut(&Condition) -> bool) -> Option<Condition> {
    watched.wait_for(is).await.ok().map(|condition| *condition)
}

/// Carries one connection to its end.
async fn connect(
    near: TcpStream,
    far: Option<SocketAddr>,
    watched: watch::Receiver<Condition>,
    carried: Arc<AtomicU64>,
) {
    let Some(far) = far else { return };
    let carry = async {
        until(watched.clone(), |condition| !condition.is_held).await;
        let Ok(far) = TcpStream::connect(far).await else { return };
        // Small requests and their answers would wait for each other.
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        let ((near_reads, near_writes), (far_reads, far_writes)) = (near.into_split(), far.into_split());
        let there = pass(near_reads, far_writes, watched.clone(), true, &carried);
        let back = pass(far_reads, near_writes, watched.clone(), false, &carried);
        tokio::join!(there, back);
    };
    tokio::select! {
        () = carry => {}
        _ = until(watched.clone(), |condition| condition.is_cut) => {}
    }
}

/// One direction: what is read is written when its time has come.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    watched: watch::Receiver<Condition>,
    is_there: bool,
    carried: &AtomicU64,
) {
    let (sender, mut pieces) = mpsc::channel::<(Instant, Vec<u8>)>(UNDER_WAY);
    let conditions = watched.clone();
    let read = async move {
        loop {
            let mut piece = vec![0; PIECE];
            let Ok(length @ 1..) = from.read(&mut piece).await else { return };
            piece.truncate(length);
            let arrives = Instant::now() + conditions.borrow().delay;
            if sender.send((arrives, piece)).await.is_err() {
                return;
            }
        }
    };
    let write = async {
        while let Some((arrives, piece)) = pieces.recv().await {
            let _ = timeout_at(arrives, std::future::pending::<()>()).await;
            let Some(now) = until(watched.clone(), |condition| !condition.is_held).await else { return };
            if is_there && now.is_half_closed {
                return;
            }
            if to.write_all(&piece).await.is_err() {
                return;
            }
            carried.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
    };
    let half_closed = until(watched.clone(), |condition| is_there && condition.is_half_closed);
    tokio::select! {
        ((), ()) = async { tokio::join!(read, write) } => {}
        _ = half_closed => {}
    }
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    /// A far end that says everything back, and then how the input ended.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut piece = [0; 16];
                    while let Ok(length @ 1..) = stream.read(&mut piece).await {
                        stream.write_all(&piece[..length]).await.unwrap();
                    }
                    let _ = stream.write_all(b"end").await;
                });
            }
        });
        address
    }

    async fn plugged() -> (Cable, TcpStream) {
        let cable = Cable::new().await;
        cable.lead_to(echo().await);
        let mut near = TcpStream::connect(cable.address()).await.unwrap();
        assert_eq!(said(&mut near, b"one").await, *b"one");
        (cable, near)
    }

    async fn said(near: &mut TcpStream, text: &[u8; 3]) -> [u8; 3] {
        near.write_all(text).await.unwrap();
        heard(near).await
    }

    async fn heard(near: &mut TcpStream) -> [u8; 3] {
        let mut heard = [0; 3];
        tokio::time::timeout(SOON, near.read_exact(&mut heard)).await.unwrap().unwrap();
        heard
    }

    #[tokio::test]
    async fn what_is_held_arrives_when_it_is_mended_and_what_is_slow_arrives_later() {
        let (cable, mut near) = plugged().await;
        cable.hold();
        near.write_all(b"two").await.unwrap();
        let mut heard_now = [0; 3];
        let early = tokio::time::timeout(Duration::from_millis(50), near.read_exact(&mut heard_now)).await;
        assert!(early.is_err(), "{heard_now:?}");
        cable.mend();
        assert_eq!(heard(&mut near).await, *b"two");
        let delay = Duration::from_millis(40);
        cable.set(Condition { delay, ..Condition::default() });
        let began = Instant::now();
        assert_eq!(said(&mut near, b"six").await, *b"six");
        assert!(began.elapsed() >= delay * 2, "{:?}", began.elapsed());
        assert_eq!(cable.carried(), 18);
    }

    #[tokio::test]
    async fn a_cut_cable_breaks_what_it_carries_and_whatever_is_connected_until_it_is_mended() {
        let (cable, mut near) = plugged().await;
        cable.cut();
        let mut piece = [0; 3];
        let ended = tokio::time::timeout(SOON, near.read(&mut piece)).await.unwrap();
        assert!(!matches!(ended, Ok(1..)));
        let mut next = TcpStream::connect(cable.address()).await.unwrap();
        let ended = tokio::time::timeout(SOON, next.read(&mut piece)).await.unwrap();
        assert!(!matches!(ended, Ok(1..)));
        cable.mend();
        let mut last = TcpStream::connect(cable.address()).await.unwrap();
        assert_eq!(said(&mut last, b"two").await, *b"two");
    }

    #[tokio::test]
    async fn half_closed_it_still_carries_answers() {
        let (cable, mut near) = plugged().await;
        cable.set(Condition { is_half_closed: true, ..Condition::default() });
        assert_eq!(heard(&mut near).await, *b"end");
    }
}
