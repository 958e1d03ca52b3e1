//! Generates the code of `proto/` without `protoc`.

use std::path::{Path, PathBuf};

use prost::Message as _;

const FILES: [&str; 3] = ["caribou/v1/interceptor.proto", "caribou/v1/tasks.proto", "caribou/v1/tools.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());
    let descriptors = protox::compile(FILES, [&root])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("caribou.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
