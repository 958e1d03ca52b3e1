//! Generates the code of `proto/` without `protoc`.

use std::path::PathBuf;

use prost::Message as _;

/// What others may know of, and is told by reflection.
const PUBLIC: [&str; 4] =
    ["caribou/v1/admin.proto", "caribou/v1/interceptor.proto", "caribou/v1/tasks.proto", "caribou/v1/tools.proto"];

/// What only replicas say to one another.
const OF_PEERS: [&str; 1] = ["caribou/peer/v1/session.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Asked for when it runs: a target folder that was copied holds a build of this program from elsewhere.
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());
    let public = protox::compile(PUBLIC, [&root])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("caribou.bin"), public.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(public)?;
    tonic_prost_build::configure().compile_fds(protox::compile(OF_PEERS, [&root])?)?;
    Ok(())
}
