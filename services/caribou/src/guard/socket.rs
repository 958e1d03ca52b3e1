//! A Unix socket that keeps packets apart and carries descriptors.
//!
//! Owns sending and receiving one packet; not what is in it (`frame`). Both calls may be dropped at any await:
//! a packet was then either moved whole or not at all. A packet that does not fit the buffer is an error; descriptors
//! for which this process has no room are missing from what is received, which the receiver has to check.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram as StdUnixDatagram;

use rustix::cmsg_space;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use super::frame::MAX_ORDER_BYTES;

/// Descriptors in one packet: stdin, stdout, stderr.
const MAX_DESCRIPTORS: usize = 3;

/// One end of the connection between main and guard.
pub(super) struct PacketSocket {
    /// A `SOCK_SEQPACKET` socket: packets like a datagram's, but connected, so that its end is seen.
    socket: UnixDatagram,
}

/// What came in beside the bytes.
pub(super) struct Received {
    /// Length of the packet in the buffer.
    pub(super) length: usize,
    /// Its descriptors, closed on exec.
    pub(super) descriptors: Vec<OwnedFd>,
}

impl PacketSocket {
    /// A connected pair: our end, and the one to hand to another process.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        // The kernel refuses a packet larger than the send buffer, whose default is a setting of the host.
        rustix::net::sockopt::set_socket_send_buffer_size(&ours, 2 * MAX_ORDER_BYTES)?;
        Ok((Self::from_end(ours)?, theirs))
    }

    /// The end that was made by [`pair`](Self::pair) in another process.
    pub(super) fn from_end(end: OwnedFd) -> io::Result<Self> {
        Ok(Self { socket: UnixDatagram::from_std(StdUnixDatagram::from(end))? })
    }

    /// Sends one packet, waiting for room.
    pub(super) async fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let once = || {
            let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
                return Err(io::Error::from(io::ErrorKind::InvalidInput));
            }
            sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
            Ok(())
        };
        self.socket.async_io(Interest::WRITABLE, once).await
    }

    /// Receives one packet into `buffer`; `None` when the other end is closed.
    pub(super) async fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let once = || {
            let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let packet =
                recvmsg(&self.socket, &mut [IoSliceMut::new(&mut *buffer)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
            if packet.flags.contains(ReturnFlags::TRUNC) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a packet exceeds its limit"));
            }
            let mut descriptors = Vec::new();
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    descriptors.extend(rights);
                }
            }
            Ok(Received { length: packet.bytes, descriptors })
        };
        match self.socket.async_io(Interest::READABLE, once).await {
            Ok(received) if received.length == 0 => Ok(None),
            Ok(received) => Ok(Some(received)),
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Closes the connection for both ends, whoever else still holds this one.
    pub(super) fn close(&self) {
        // Fails only if the other end closed it first.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    use super::*;

    fn pair() -> (PacketSocket, PacketSocket) {
        let (ours, theirs) = PacketSocket::pair().unwrap();
        (ours, PacketSocket::from_end(theirs).unwrap())
    }

    #[tokio::test]
    async fn packets_stay_apart_and_descriptors_arrive_usable() {
        let (a, b) = pair();
        let (mut reader, writer) = std::io::pipe().unwrap();
        a.send(b"one", &[writer.as_fd()]).await.unwrap();
        a.send(b"two", &[]).await.unwrap();
        drop(writer);

        let mut buffer = [0; 16];
        let first = b.receive(&mut buffer).await.unwrap().unwrap();
        assert_eq!(&buffer[..first.length], b"one");
        let mut pipe = std::fs::File::from(first.descriptors.into_iter().next().unwrap());
        pipe.write_all(b"through").unwrap();
        drop(pipe);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");

        let second = b.receive(&mut buffer).await.unwrap().unwrap();
        assert_eq!((&buffer[..second.length], second.descriptors.len()), (&b"two"[..], 0));
    }

    #[tokio::test]
    async fn the_largest_order_fits_and_a_larger_packet_is_an_error() {
        let (a, b) = pair();
        let mut buffer = vec![0; MAX_ORDER_BYTES];
        a.send(&buffer, &[]).await.unwrap();
        assert_eq!(b.receive(&mut buffer).await.unwrap().unwrap().length, MAX_ORDER_BYTES);
        a.send(b"too long", &[]).await.unwrap();
        assert!(b.receive(&mut buffer[..4]).await.is_err());
    }

    #[tokio::test]
    async fn a_closed_connection_ends_the_other_side() {
        let (a, b) = pair();
        a.close();
        assert!(b.receive(&mut [0; 4]).await.unwrap().is_none());
        assert!(b.send(b"x", &[]).await.is_err());
    }
}
