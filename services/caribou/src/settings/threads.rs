//! Settings on the files of threads (contract 4.6, 4.7).

use std::path::{Path, PathBuf};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where agents of the DeerFlow family see the files of their thread.
const VIRTUAL_PREFIX: &str = "/mnt/user-data";

/// The files of threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct Threads {
    /// The folder below which each thread has its own, as `users/<user>/threads/<thread>/user-data`. When absent:
    /// `data_dir`. A relative path in a file counts from that file's folder.
    #[garde(skip)]
    pub root: Option<PathBuf>,
    /// Where an agent sees the `user-data` of its thread: answers in an agent's form name files by this path. Absolute,
    /// without a slash at its end.
    #[garde(custom(absolute))]
    pub virtual_prefix: String,
    /// Whether all replicas see the same files below `root`, or files of threads may be lost when a session moves to
    /// another replica. When false, a thread that has files gets its child processes on the replica that has them, and
    /// nowhere else.
    #[garde(skip)]
    pub shared: bool,
}

impl Default for Threads {
    fn default() -> Self {
        Self { root: None, virtual_prefix: VIRTUAL_PREFIX.to_owned(), shared: true }
    }
}

impl Threads {
    /// The folder of all threads.
    pub fn root<'a>(&'a self, data_dir: &'a Path) -> &'a Path {
        self.root.as_deref().unwrap_or(data_dir)
    }
}

fn absolute(path: &str, _: &()) -> garde::Result {
    let clear =
        !path.contains(char::is_control) && path.split('/').skip(1).all(|part| !["", ".", ".."].contains(&part));
    if path.starts_with('/') && clear { Ok(()) } else { Err(garde::Error::new("not an absolute path")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_prefix_is_a_plain_absolute_path() {
        for good in ["/mnt/user-data", "/data", "/a b/ö"] {
            assert!(absolute(good, &()).is_ok(), "{good}");
        }
        for bad in ["", "/", "mnt", "/mnt/", "//mnt", "/a/../b", "/a\n"] {
            assert!(absolute(bad, &()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn threads_lie_in_the_data_folder_unless_told_otherwise() {
        let data = Path::new("/data");
        assert_eq!(Threads::default().root(data), data);
        assert_eq!(Threads { root: Some("/t".into()), ..Threads::default() }.root(data), Path::new("/t"));
    }
}
