//! Where the programs of PostgreSQL and Redis are, and as whom they run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Names a folder that holds them, laid out as `/usr`.
pub(super) const SERVERS_DIR: &str = "CARIBOU_SERVERS_DIR";

/// `nobody` on every Linux system: PostgreSQL refuses to run as root.
pub(super) const NOBODY: u32 = 65_534;

/// Programs that lie together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Programs {
    /// Their folder.
    pub(super) folder: PathBuf,
    /// Their own libraries, when they were not installed where the system looks.
    pub(super) libraries: Option<PathBuf>,
}

/// The folder that holds all of `names`: below the one that the variable names, else one of `PATH`, else Debian's
/// PostgreSQL.
pub(super) fn find(names: &[&str], servers: Option<&Path>, path: Option<&OsString>) -> Option<Programs> {
    let holds = |folder: &PathBuf| names.iter().all(|name| folder.join(name).is_file());
    if let Some(prefix) = servers {
        let own = [prefix.to_owned(), prefix.join("bin")];
        if let Some(folder) = own.into_iter().chain(versions(&prefix.join("lib/postgresql"))).find(holds) {
            let libraries = prefix.join("lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
            return Some(Programs { folder, libraries: Some(libraries).filter(|libraries| libraries.is_dir()) });
        }
    }
    let on_path = path.into_iter().flat_map(std::env::split_paths);
    let folder = on_path.chain(versions(Path::new("/usr/lib/postgresql"))).find(holds)?;
    Some(Programs { folder, libraries: None })
}

/// The newest version first.
fn versions(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<f64>().ok());
    let mut versions: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    versions.sort_by(|one, other| number(other).unwrap_or(0.0).total_cmp(&number(one).unwrap_or(0.0)));
    versions.into_iter().map(|version| version.join("bin")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: PathBuf) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    #[test]
    fn the_newest_version_that_has_all_is_found_and_the_named_folder_counts_most() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (["initdb", "postgres"], ["initdb"]);
        for (version, programs) in [("9", &old[..]), ("15", &old[..]), ("17", &new[..])] {
            let bin = folder.path().join("lib/postgresql").join(version).join("bin");
            programs.iter().for_each(|program| touch(bin.join(program)));
        }
        let found = find(&["initdb", "postgres"], Some(folder.path()), None).unwrap();
        assert_eq!(found.folder, folder.path().join("lib/postgresql/15/bin"));
        let path = OsString::from(folder.path().join("elsewhere"));
        touch(folder.path().join("elsewhere/redis-server"));
        let redis = || find(&["redis-server"], Some(folder.path()), Some(&path)).map(|found| found.folder);
        assert_eq!(redis(), Some(folder.path().join("elsewhere")));
        touch(folder.path().join("bin/redis-server"));
        assert_eq!(redis(), Some(folder.path().join("bin")));
        assert_eq!(find(&["no-such-server"], Some(folder.path()), Some(&path)), None);
    }
}
