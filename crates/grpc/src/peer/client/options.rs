//! What the way to other replicas is made with.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::ids::BootId;
use rustls::ClientConfig;
use tokio::sync::watch;

use crate::peer::Membership;

/// How connections to other replicas are encrypted: the value of the moment holds for each new one.
pub type ClientConfigs = watch::Receiver<Arc<ClientConfig>>;

/// What the way to other replicas is made with.
#[derive(Clone)]
pub struct PeerOptions {
    /// This life.
    pub boot: BootId,
    /// What it shows to be believed.
    pub membership: Membership,
    /// How connections are encrypted; `None` = they are not.
    pub tls: Option<ClientConfigs>,
    /// The name that every replica's certificate holds; `None` = the host of its address.
    pub certificate_name: Option<String>,
    /// The longest that a request in a session may take.
    pub call_max: Duration,
    /// How long a lost connection is made again for a request that may have been received.
    pub rejoin: Duration,
}

/// The owner keeps a request whose caller was lost for a little longer.
const REJOIN: Duration = Duration::from_secs(10);

impl PeerOptions {
    /// Those of a life that shows this, without TLS.
    pub fn new(boot: BootId, membership: Membership) -> Self {
        let (tls, certificate_name) = (None, None);
        Self { boot, membership, tls, certificate_name, call_max: bounds::CALL_MAX, rejoin: REJOIN }
    }
}
