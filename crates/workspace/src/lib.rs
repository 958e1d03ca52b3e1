//! Files: the configuration file of the operator, and the folders of threads.
//!
//! Owns finding and reading; what a document means is `caribou-core`'s, and the environment is handed in. Reading
//! the configuration blocks: callers inside an async runtime use a blocking task. An error names the file and who
//! chose it, never its content.

mod config_file;
mod config_source;
mod thread_files;
mod thread_folders;

pub use config_file::{FileError, Found, FoundText, Lookup, PathChoice, find, read};
pub use config_source::ConfigFile;
pub use thread_folders::FoldersBelow;
