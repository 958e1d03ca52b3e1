//! Whether this process may be one of several (`deployment.multi_instance`): everything that would part the replicas, told
//! in one message, before anything of it is served.
//!
//! Owns the list. What each part says when it is used alone stays with that part.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::bail;
use caribou_core::config::Document;
use caribou_oauth::{CREDENTIALS_KEY, KeyRing};
use caribou_runtime::wall_clock_ms;
use caribou_store::{Location, SqlStore};

use crate::assemble;
use crate::credentials;
use crate::settings::{Cluster, Settings};

/// Clocks that differ by more are not kept by anything: expiry of tokens and certificates would be judged wrongly. The
/// leases of replicas do not depend on it.
const MOST_SKEW: Duration = Duration::from_secs(30);

/// Refuses to be one of several replicas where they would not see the same.
///
/// # Errors
/// Everything that is in the way, and how to mend it.
pub(crate) async fn pass(settings: &Settings) -> anyhow::Result<()> {
    if !settings.deployment.multi_instance {
        return Ok(());
    }
    let mut problems = Vec::new();
    match of_location(settings) {
        None => problems.extend(of_database(&settings.database_location()).await),
        Some(why) => problems.push(why),
    }
    problems.extend(of_credentials(settings, &document(settings)));
    problems.extend(of_address(&settings.cluster));
    if problems.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = problems.iter().map(|problem| format!("\n  {problem}")).collect();
    bail!("this process cannot be one of several replicas (`deployment.multi_instance`):{}", lines.concat())
}

/// Why the database is none that several replicas share; `None` = it is one, or this is the only replica.
pub(crate) fn of_location(settings: &Settings) -> Option<String> {
    let is_shared = settings.has_database() && matches!(settings.database_location(), Location::Postgres(_));
    (settings.deployment.multi_instance && !is_shared).then(|| {
        "the database is not PostgreSQL, which is all that replicas share: set `database_url` to a PostgreSQL one"
            .to_owned()
    })
}

/// Why the keys that encrypt what is stored are not those of several replicas; `None` = they can be, or this is the only
/// one.
pub(crate) fn of_credentials(settings: &Settings, document: &Document) -> Option<String> {
    if !settings.deployment.multi_instance {
        return None;
    }
    let keys = KeyRing::from_variables(&|name| std::env::var(name).ok());
    match (keys, credentials::demand(settings, document)) {
        (Err(error), _) => Some(error.to_string()),
        // Names the server that cannot do without.
        (Ok(None), Err(error)) => Some(error.to_string()),
        (Ok(None), Ok(())) => Some(format!(
            "{CREDENTIALS_KEY} is not set, so what one replica encrypts the others cannot read: set it to the same \
             value for every replica; `caribou keys generate` prints one"
        )),
        (Ok(Some(_)), _) => None,
    }
}

/// The servers as a file names them, to say which of them cannot do without a key; none when that cannot be read, which
/// is told later.
fn document(settings: &Settings) -> Document {
    let found = assemble::find_servers(settings).ok().flatten();
    let read = found.map(|found| assemble::understand(settings, &found.source()));
    read.and_then(Result::ok).unwrap_or_default()
}

/// Whether it can be used by this version, and its clock by this machine.
async fn of_database(location: &Location) -> Vec<String> {
    let ready = async {
        let store = SqlStore::open(location).await.map_err(|error| error.to_string())?;
        let ready = store.make_ready().await.map_err(|error| error.to_string());
        let time = store.time_ms().await.map_err(|error| error.to_string());
        store.close().await;
        Ok::<_, String>([ready.map(|_| ()), time.and_then(of_clocks)])
    };
    match ready.await {
        Ok(parts) => parts.into_iter().filter_map(Result::err).collect(),
        Err(error) => vec![error],
    }
}

/// How much the clock of this machine and the database's differ; an error when nothing keeps them.
pub(crate) fn skew(database_ms: i64) -> Result<Duration, Duration> {
    let skew = Duration::from_millis(wall_clock_ms().abs_diff(database_ms));
    if skew <= MOST_SKEW { Ok(skew) } else { Err(skew) }
}

fn of_clocks(database_ms: i64) -> Result<(), String> {
    skew(database_ms).map(drop).map_err(|skew| {
        format!("the clock of this machine and that of the database differ by {} s: set both by NTP", skew.as_secs())
    })
}

/// Whether the others can reach this replica where it says it is.
pub(crate) fn of_address(cluster: &Cluster) -> Option<String> {
    let listen = cluster.listen?;
    let host = match &cluster.advertise {
        Some(advertised) => host_of(advertised),
        None => listen.ip().to_string(),
    };
    let is_loopback =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
    is_loopback.then(|| {
        "the others would look for this replica on their own machine: set `cluster.advertise` to an address of this \
         one that they reach"
            .to_owned()
    })
}

fn host_of(address: &str) -> String {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    address.parse::<SocketAddr>().map_or_else(|_| host.to_ascii_lowercase(), |address| address.ip().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_alone_is_none_for_others() {
        let of = |text: &str| of_address(&serde_json::from_str(text).unwrap()).is_some();
        assert!(!of("{}"), "nothing is shared");
        assert!(of(r#"{"listen":"127.0.0.1:1"}"#) && of(r#"{"listen":"[::1]:1"}"#));
        assert!(!of(r#"{"listen":"10.0.0.1:1"}"#));
        assert!(!of(r#"{"listen":"127.0.0.1:1","advertise":"caribou-0.peers:1"}"#), "a tunnel");
        for bad in ["localhost:1", "LOCALHOST:1", "127.0.0.9:1", "[::1]:1"] {
            assert!(of(&format!(r#"{{"listen":"0.0.0.0:1","advertise":"{bad}"}}"#)), "{bad}");
        }
    }

    #[test]
    fn clocks_may_differ_a_little() {
        let now = wall_clock_ms();
        assert!(of_clocks(now + 5_000).is_ok() && of_clocks(now - 5_000).is_ok());
        assert!(of_clocks(now + 60_000).is_err() && of_clocks(now - 60_000).is_err());
    }
}
