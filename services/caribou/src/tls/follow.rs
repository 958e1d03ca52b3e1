//! Follows the files of certificates while a replica serves.
//!
//! The files are compared by what they hold: whoever renews them swaps links, copies times along, or writes one after
//! the other. Half of a renewal is a pair that does not fit, so the next look finds the rest.

use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::server::{Configs, Material, Wrong};
use crate::settings;

/// Between two looks at three small files: soon beside the time a certificate is renewed ahead of its end.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The configurations of the moment. Followed as long as somebody listens.
pub(crate) struct Followed {
    /// For the REST door.
    pub(crate) rest: watch::Receiver<Arc<ServerConfig>>,
    /// For the gRPC door.
    pub(crate) grpc: watch::Receiver<Arc<ServerConfig>>,
}

impl Followed {
    /// Reads the files that the settings name and follows them; `None` when they name none.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub(crate) fn begin(tls: &settings::Tls) -> Result<Option<Self>, Wrong> {
        let Some(material) = Material::read(tls)? else { return Ok(None) };
        let configs = material.configs()?;
        let (rest, grpc) = (watch::Sender::new(configs.rest), watch::Sender::new(configs.grpc));
        let followed = Self { rest: rest.subscribe(), grpc: grpc.subscribe() };
        tokio::spawn(follow(tls.clone(), Told { seen: Ok(material), rest, grpc }));
        Ok(Some(followed))
    }
}

/// What was seen last, and who is told of what comes next.
struct Told {
    seen: Result<Material, Wrong>,
    rest: watch::Sender<Arc<ServerConfig>>,
    grpc: watch::Sender<Arc<ServerConfig>>,
}

impl Told {
    /// Tells of what is new and good, and once of what is new and wrong.
    fn look(&mut self, found: Result<Option<Material>, Wrong>) {
        // The settings do not change, so what they named is named still.
        let Some(found) = found.transpose() else { return };
        if found == self.seen {
            return;
        }
        match found.as_ref().map_err(Clone::clone).and_then(Material::configs) {
            Ok(Configs { rest, grpc }) => {
                self.rest.send_replace(rest);
                self.grpc.send_replace(grpc);
                tracing::info!("the renewed certificate holds for new connections");
            }
            Err(wrong) => tracing::warn!("the changed certificate is not used, the last good one goes on: {wrong}"),
        }
        self.seen = found;
    }
}

async fn follow(tls: settings::Tls, mut told: Told) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            () = async { tokio::join!(told.rest.closed(), told.grpc.closed()); } => return,
            _ = looks.tick() => {}
        }
        let tls = tls.clone();
        if let Ok(found) = spawn_blocking(move || Material::read(&tls)).await {
            told.look(found);
        }
    }
}
