//! The one rule about where Caribou may listen while it cannot tell callers apart (architecture.md §2, identity).

use std::net::SocketAddr;

/// An address that other machines can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Caribou cannot tell callers apart yet, so it listens on loopback addresses only, and {0} can be reached from \
     other machines; listen on 127.0.0.1:{port} and let callers in through an SSH tunnel or a sidecar that \
     authenticates them",
    port = .0.port()
)]
pub struct NotLoopback(SocketAddr);

/// Refuses every address but those of this machine's loopback interface.
///
/// # Errors
/// [`NotLoopback`], which says why and what to do.
pub fn require_loopback(listen: SocketAddr) -> Result<(), NotLoopback> {
    if listen.ip().to_canonical().is_loopback() { Ok(()) } else { Err(NotLoopback(listen)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_of_both_families_are_accepted() {
        for address in ["127.0.0.1:0", "127.9.9.9:80", "[::1]:8750", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(require_loopback(address.parse().unwrap()), Ok(()), "{address}");
        }
    }

    #[test]
    fn any_other_address_is_refused_with_the_way_out() {
        for address in ["0.0.0.0:8750", "[::]:8750", "192.168.1.4:8750"] {
            let refused = require_loopback(address.parse().unwrap()).unwrap_err().to_string();
            assert!(refused.contains("127.0.0.1:8750") && refused.contains("tunnel"), "{refused}");
        }
    }
}
