//! How long a reset takes until every replica has done it, with Redis up.
//!
//! The answer of a reset waits for the others, and looks for their word every 50 ms: what is measured is a little more than
//! what it takes.

use std::time::Instant;

use anyhow::{Context, ensure};
use caribou_tests::{Caribou, network};
use serde_json::Value;

use crate::sample::Samples;

/// Resets at `caribou`, one after the other; how long each took until all of the `replicas` had done it. One that a
/// replica has not confirmed in time is a failure.
///
/// # Errors
/// A reset was not made.
pub(super) async fn measure(caribou: &Caribou, replicas: usize, resets: u32) -> anyhow::Result<Samples> {
    eprintln!("{resets} resets over {replicas} replicas");
    let (client, url) = (network::http_client(), format!("{}/api/mcp/cache/reset", caribou.url()));
    let mut samples = Samples::default();
    for _ in 0..resets {
        let began = Instant::now();
        let answer = client.post(&url).send().await.context("a reset")?;
        let status = answer.status();
        let told: Value = answer.json().await.context("the answer of a reset")?;
        ensure!(status.is_success(), "a reset was answered with {status}: {told}");
        match told.pointer("/confirmed").and_then(Value::as_array) {
            Some(confirmed) if confirmed.len() == replicas => samples.answered(began.elapsed()),
            _ => samples.failed(|| format!("not every replica has said that it is done: {told}")),
        }
    }
    Ok(samples)
}
