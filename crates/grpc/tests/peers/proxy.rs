//! A cable that can be cut.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Leads to an address that may change.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    cut: watch::Sender<u32>,
    to: watch::Sender<SocketAddr>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cut, to) = (watch::Sender::new(0), watch::Sender::new(to));
        let (cuts, leads) = (cut.clone(), to.subscribe());
        let accepting = tokio::spawn(async move {
            while let Ok((mut here, _)) = listener.accept().await {
                let (to, mut cut) = (*leads.borrow(), cuts.subscribe());
                tokio::spawn(async move {
                    let Ok(mut there) = TcpStream::connect(to).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut here, &mut there) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self { address, cut, to, accepting }
    }

    /// Cuts what is connected; who connects again gets through.
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|cut| *cut += 1);
    }

    /// Who connects from now on finds somebody else.
    pub(crate) fn lead_to(&self, to: SocketAddr) {
        self.to.send_replace(to);
    }

    /// Cuts what is connected, and nobody gets through any more.
    pub(crate) async fn close(&mut self) {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
        self.cut();
    }
}
