//! Whether names lead anywhere: the one by which other replicas reach this one, and those of remote servers.

use std::collections::BTreeMap;

use caribou_core::config::{Document, Transport};
use futures::StreamExt as _;
use url::Url;

use super::finding::Finding;
use super::ground::Ground;
use crate::start_gate;

/// How many names are asked about at once.
const AT_ONCE: usize = 16;

/// The variables that name a proxy, which then asks for names itself.
const PROXIES: [&str; 6] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

pub(super) async fn check(ground: &Ground, document: Option<&Document>) -> Vec<Finding> {
    let mut found = Vec::new();
    if ground.spoiled(&["cluster"]).is_none() {
        found.extend(advertised(ground).await);
    }
    if ground.offline {
        found.push(Finding::skipped("names of remote servers", Some("leave out `--offline`")));
    } else if let Some(document) = document {
        let hosts = hosts_of(document).into_iter().map(|(host, servers)| remote(ground, host, servers));
        found.extend(futures::stream::iter(hosts).buffered(AT_ONCE).collect::<Vec<_>>().await);
    }
    if found.is_empty() {
        found.push(Finding::ok("no names are used"));
    }
    found
}

async fn advertised(ground: &Ground) -> Option<Finding> {
    let cluster = &ground.settings.cluster;
    cluster.listen?;
    if let Some(why) = start_gate::of_address(cluster) {
        let mend = "set `cluster.advertise` to an address of this machine that the others reach";
        // On one machine alone it is as meant.
        let found = match ground.settings.deployment.multi_instance {
            true => Finding::failed(why, mend),
            false => Finding::warning(why, mend),
        };
        return Some(found.about("cluster.advertise"));
    }
    let address = cluster.advertise.as_ref()?;
    let found = match resolved(address).await {
        Ok(addresses) => Finding::ok(addresses),
        Err(why) => Finding::failed(
            format!("the others look for this replica at a name that leads nowhere from here: {why}"),
            "see that the name in `cluster.advertise` is right, and that the DNS of this machine knows it",
        ),
    };
    Some(found.about("cluster.advertise"))
}

async fn remote(ground: &Ground, host: String, servers: Vec<String>) -> Finding {
    let servers = servers.join(", ");
    let has_proxy =
        ground.settings.network.proxy.is_some() || PROXIES.iter().any(|name| std::env::var_os(name).is_some());
    let found = match resolved(&format!("{host}:443")).await {
        Ok(addresses) => Finding::ok(addresses),
        Err(why) if has_proxy => Finding::warning(
            format!("not known here ({why}); the proxy may know it: {servers}"),
            "if the servers below answer, nothing needs to be done",
        ),
        Err(why) => Finding::failed(
            format!("the name leads nowhere ({why}): {servers}"),
            "see that `url` is right, and that the DNS of this machine knows the name",
        ),
    };
    found.about(host)
}

/// The names of enabled remote servers, each with who uses it. Addresses that are no names need nobody to ask.
fn hosts_of(document: &Document) -> BTreeMap<String, Vec<String>> {
    let mut hosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for server in document.servers.iter().filter_map(|entry| entry.config.as_ref().ok()).filter(|one| one.enabled) {
        let (Transport::Http(remote) | Transport::Sse(remote)) = &server.transport else { continue };
        let Ok(url) = Url::parse(&remote.url) else { continue };
        if let Some(host) = url.domain() {
            hosts.entry(host.to_owned()).or_default().push(server.name.to_string());
        }
    }
    hosts
}

async fn resolved(address: &str) -> Result<String, String> {
    let found = tokio::net::lookup_host(address).await.map_err(|error| error.to_string())?;
    let mut addresses: Vec<String> = found.map(|address| address.ip().to_string()).collect();
    addresses.dedup();
    let more = addresses.len().saturating_sub(4);
    addresses.truncate(4);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Ok(format!("{}{more}", addresses.join(", ")))
}
