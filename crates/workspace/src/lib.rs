//! Files of the operator: today the configuration file.
//!
//! Owns finding and reading; what a document means is `caribou-core`'s, and the environment is handed in. Blocking:
//! callers inside an async runtime use a blocking task. An error names the file and who chose it, never its content.

mod config_file;

pub use config_file::{ConfigText, FileError, Found, Lookup, PathChoice, find, read};
