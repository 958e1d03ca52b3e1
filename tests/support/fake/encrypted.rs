//! A listener that speaks TLS, for the fake over HTTPS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::serve::Listener;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::seen::Log;

/// Notes in the log what each connection agreed to speak, and each handshake that failed.
pub(super) struct Encrypted {
    pub(super) listener: TcpListener,
    pub(super) config: Arc<ServerConfig>,
    pub(super) log: Log,
}

impl Listener for Encrypted {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, address)) = self.listener.accept().await else { continue };
            match TlsAcceptor::from(Arc::clone(&self.config)).accept(stream).await {
                Ok(stream) => {
                    let spoken = stream.get_ref().1.alpn_protocol().unwrap_or_default();
                    self.log.add("encrypted", &String::from_utf8_lossy(spoken));
                    return (stream, address);
                }
                Err(error) => self.log.add("distrusted", &error.to_string()),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
