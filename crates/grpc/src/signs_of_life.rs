//! How a connection is noticed to be dead whose other end says nothing any more.

use std::io;
use std::time::Duration;

use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::net::TcpStream;

/// How often an open connection is asked for a sign of life, and how long that may take.
#[derive(Clone, Copy)]
pub(crate) struct SignsOfLife {
    pub(crate) every: Duration,
    pub(crate) within: Duration,
}

impl SignsOfLife {
    /// Has the system give the connection up in the same time, when nothing that was sent is acknowledged.
    ///
    /// # Errors
    /// The connection is gone.
    pub(crate) fn bound(self, stream: &TcpStream) -> io::Result<()> {
        let most = u32::try_from((self.every + self.within).as_millis()).unwrap_or(u32::MAX);
        Ok(set_tcp_user_timeout(stream, most)?)
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::sockopt::tcp_user_timeout;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_system_waits_no_longer_than_a_sign_of_life_may_take() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        SignsOfLife { every: Duration::from_secs(5), within: Duration::from_secs(3) }.bound(&stream).unwrap();
        assert_eq!(tcp_user_timeout(&stream).unwrap(), 8_000);
    }
}
