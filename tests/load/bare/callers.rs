//! Who makes bare calls, over one connection, each caller one after the other.

use std::io::BufRead as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use caribou_proto::peer::v1::HelloRequest;
use caribou_proto::peer::v1::session_service_client::SessionServiceClient;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};

/// What either message carries.
const BYTES: usize = 1_024;

/// Calls with `in_flight` callers for as long as each line of stdin says, in milliseconds, and answers each line with the
/// number of calls.
///
/// # Errors
/// There is nobody at that address, or a call failed.
pub(crate) fn call(address: SocketAddr, in_flight: u16) -> anyhow::Result<()> {
    let runtime = runtime()?;
    let endpoint = Endpoint::new(format!("http://{address}"))?.tcp_nodelay(true);
    let channel = runtime.block_on(endpoint.connect()).context("connecting for bare calls")?;
    for order in std::io::stdin().lock().lines() {
        let length = Duration::from_millis(order?.trim().parse().context("how long to call")?);
        println!("{}", runtime.block_on(calls(&channel, in_flight, length))?);
    }
    Ok(())
}

/// As many threads as the replicas that are measured beside it have here.
pub(super) fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().context("a runtime")
}

async fn calls(channel: &Channel, in_flight: u16, length: Duration) -> anyhow::Result<u64> {
    let end = Instant::now() + length;
    let callers: Vec<_> = (0..in_flight).map(|_| tokio::spawn(caller(channel.clone(), end))).collect();
    let mut all = 0;
    for caller in callers {
        all += caller.await??;
    }
    Ok(all)
}

async fn caller(channel: Channel, end: Instant) -> anyhow::Result<u64> {
    let mut client = SessionServiceClient::new(channel);
    let request = HelloRequest { version: "v".repeat(BYTES), ..HelloRequest::default() };
    let mut calls = 0;
    while Instant::now() < end {
        let answer = client.hello(request.clone()).await.context("a bare call")?.into_inner();
        ensure!(answer.version.len() == BYTES, "a bare call was answered with something else");
        calls += 1;
    }
    Ok(calls)
}
