//! The product's binary, built beside the tests so that they always run what the tree holds.

use std::process::ExitCode;

fn main() -> ExitCode {
    caribou::run()
}
