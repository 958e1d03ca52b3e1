//! Finds and reads `extensions_config.json` (contract 1.9).
//!
//! Owns the order of places; does not parse. The first place that is chosen wins:
//! an argument, a variable, the project root, the places of old. A file somebody named must exist; a search that finds
//! nothing is no error. Errors hold the path and who chose it, never a part of the file (O3).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use caribou_core::config::{MAX_DOCUMENT_BYTES, Source};

use crate::config_source::reading::Reading;

/// Variables that name the file, the first one wins.
const FILE_VARIABLES: [&str; 2] = ["CARIBOU_EXTENSIONS_CONFIG_PATH", "DEER_FLOW_EXTENSIONS_CONFIG_PATH"];

/// Variables that name the project root, the first one wins.
const ROOT_VARIABLES: [&str; 2] = ["CARIBOU_PROJECT_ROOT", "DEER_FLOW_PROJECT_ROOT"];

/// Names the file may have, the first one wins; it is the one a new file gets.
pub(crate) const FILE_NAMES: [&str; 2] = ["extensions_config.json", "mcp_config.json"];

/// The folder of the backend in a project of old.
const BACKEND: &str = "backend";

/// What a search starts from.
pub struct Lookup<'a> {
    /// The path given on the command line.
    pub argument: Option<&'a Path>,
    /// What an environment variable holds; one that is empty counts as not set.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The working directory, absolute: where relative paths start.
    pub cwd: &'a Path,
}

/// Who chose the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChoice {
    /// The command line.
    Argument,
    /// This environment variable.
    Variable(&'static str),
    /// It lies in the project root.
    ProjectRoot,
    /// It lies where older versions kept it.
    Legacy,
}

impl fmt::Display for PathChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument => f.write_str("chosen by the argument `config_path`"),
            Self::Variable(name) => write!(f, "chosen by the variable {name}"),
            Self::ProjectRoot => f.write_str("found in the project root"),
            Self::Legacy => f.write_str("found in a place of older versions"),
        }
    }
}

/// A file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its path, absolute.
    pub path: PathBuf,
    /// Who chose it.
    pub chosen_by: PathChoice,
}

/// A file's bytes. Without `Debug`: they hold secrets.
pub struct FoundText {
    /// The file.
    pub found: Found,
    bytes: Vec<u8>,
}

impl FoundText {
    /// What `caribou_core::config::parse` takes.
    pub fn source(&self) -> Source<'_> {
        Source { file: &self.found.path, text: &self.bytes }
    }
}

/// Why there is no configuration to read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The chosen file does not exist.
    #[error("the configuration file {path} does not exist ({chosen_by})")]
    Missing {
        /// The file.
        path: PathBuf,
        /// Who chose it.
        chosen_by: PathChoice,
    },
    /// The project root is no directory.
    #[error("the project root {path} is not a directory (chosen by the variable {variable})")]
    NoRoot {
        /// The root.
        path: PathBuf,
        /// The variable that names it.
        variable: &'static str,
    },
    /// It is a directory, a pipe or a device; reading one might never end.
    #[error("the configuration file {path} is not a regular file ({chosen_by})")]
    NotAFile {
        /// The file.
        path: PathBuf,
        /// Who chose it.
        chosen_by: PathChoice,
    },
    /// It is larger than [`MAX_DOCUMENT_BYTES`].
    #[error("the configuration file {path} is larger than {MAX_DOCUMENT_BYTES} bytes ({chosen_by})")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Who chose it.
        chosen_by: PathChoice,
    },
    /// The system refused.
    #[error("cannot read the configuration file {path} ({chosen_by}): {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Who chose it.
        chosen_by: PathChoice,
        /// What the system said.
        source: io::Error,
    },
}

/// Finds the file; `None` when nothing is chosen and no place holds one, which means no servers.
///
/// # Errors
/// A file named by argument or variable does not exist, or the named project root is no directory.
pub fn find(lookup: &Lookup<'_>) -> Result<Option<Found>, FileError> {
    if let Some(Found { path, chosen_by }) = lookup.named() {
        return if path.exists() {
            Ok(Some(Found { path, chosen_by }))
        } else {
            Err(FileError::Missing { path, chosen_by })
        };
    }
    let root = lookup.project_root()?;
    let in_root = FILE_NAMES.map(|name| (root.join(name), PathChoice::ProjectRoot));
    let legacy = legacy_places(&root).into_iter().map(|path| (path, PathChoice::Legacy));
    let found = in_root.into_iter().chain(legacy).find(|(path, _)| path.is_file());
    Ok(found.map(|(path, chosen_by)| Found { path, chosen_by }))
}

impl Lookup<'_> {
    /// The file that somebody named, whether it is there or not.
    pub(crate) fn named(&self) -> Option<Found> {
        let argument = self.argument.map(|path| (self.cwd.join(path), PathChoice::Argument));
        let variable = || {
            let (name, path) = self.variable(&FILE_VARIABLES)?;
            Some((path, PathChoice::Variable(name)))
        };
        let (path, chosen_by) = argument.or_else(variable)?;
        Some(Found { path, chosen_by })
    }

    /// The first of these variables that is set, with the path it holds.
    fn variable(&self, names: &[&'static str]) -> Option<(&'static str, PathBuf)> {
        names.iter().find_map(|name| {
            let path = (self.env)(name).filter(|path| !path.is_empty())?;
            Some((*name, self.cwd.join(path)))
        })
    }

    /// The folder where a file is looked for, and created.
    pub(crate) fn project_root(&self) -> Result<PathBuf, FileError> {
        match self.variable(&ROOT_VARIABLES) {
            Some((_, path)) if path.is_dir() => Ok(path),
            Some((variable, path)) => Err(FileError::NoRoot { path, variable }),
            None => Ok(self.cwd.to_owned()),
        }
    }
}

/// Backend folder and repository root for each name; the project root may be either, since people start in both.
fn legacy_places(root: &Path) -> Vec<PathBuf> {
    let (backend, repository) = match root.parent() {
        Some(parent) if root.ends_with(BACKEND) => (root.to_owned(), parent.to_owned()),
        _ => (root.join(BACKEND), root.to_owned()),
    };
    FILE_NAMES.iter().flat_map(|name| [backend.join(name), repository.join(name)]).collect()
}

/// Reads the file.
///
/// # Errors
/// It vanished, is no regular file, is larger than [`MAX_DOCUMENT_BYTES`], or the system refused.
pub fn read(found: Found) -> Result<FoundText, FileError> {
    let Found { path, chosen_by } = found.clone();
    match Reading::of(&path) {
        Ok(Reading { bytes, .. }) => Ok(FoundText { found, bytes }),
        Err(source) => Err(match source.kind() {
            io::ErrorKind::NotFound => FileError::Missing { path, chosen_by },
            io::ErrorKind::InvalidInput => FileError::NotAFile { path, chosen_by },
            io::ErrorKind::FileTooLarge => FileError::TooLarge { path, chosen_by },
            _ => FileError::Unreadable { path, chosen_by, source },
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// A folder with these empty files.
    fn folder(files: &[&str]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}").unwrap();
        }
        folder
    }

    /// What is found from `cwd`, with paths relative to `folder`.
    fn found_from(
        folder: &TempDir,
        cwd: &str,
        argument: Option<&str>,
        env: &[(&str, &str)],
    ) -> Result<Option<(String, PathChoice)>, String> {
        let env = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let cwd = folder.path().join(cwd);
        let found = find(&Lookup { argument: argument.map(Path::new), env: &env, cwd: &cwd })
            .map_err(|error| error.to_string())?;
        Ok(found.map(|found| {
            assert!(found.path.is_absolute());
            (found.path.strip_prefix(folder.path()).unwrap().display().to_string(), found.chosen_by)
        }))
    }

    fn found(
        folder: &TempDir,
        argument: Option<&str>,
        env: &[(&str, &str)],
    ) -> Result<Option<(String, PathChoice)>, String> {
        found_from(folder, "", argument, env)
    }

    const OURS: &str = "CARIBOU_EXTENSIONS_CONFIG_PATH";
    const ALIAS: &str = "DEER_FLOW_EXTENSIONS_CONFIG_PATH";

    #[test]
    fn the_argument_wins_then_our_variable_then_its_alias_then_the_root() {
        // Contract 1.9.
        let folder = folder(&["arg.json", "ours.json", "alias.json", "extensions_config.json", "mcp_config.json"]);
        let env = [(OURS, "ours.json"), (ALIAS, "alias.json")];
        let ok = |name: &str, choice| Ok(Some((name.to_owned(), choice)));
        assert_eq!(found(&folder, Some("arg.json"), &env), ok("arg.json", PathChoice::Argument));
        assert_eq!(found(&folder, None, &env), ok("ours.json", PathChoice::Variable(OURS)));
        assert_eq!(found(&folder, None, &[(OURS, ""), env[1]]), ok("alias.json", PathChoice::Variable(ALIAS)));
        assert_eq!(found(&folder, None, &[]), ok("extensions_config.json", PathChoice::ProjectRoot));
    }

    #[test]
    fn a_named_file_that_is_missing_is_an_error_that_says_who_named_it() {
        // Contract 1.9.
        let folder = folder(&["extensions_config.json"]);
        let by_argument = found(&folder, Some("no.json"), &[]).unwrap_err();
        assert!(by_argument.contains("no.json does not exist (chosen by the argument `config_path`)"), "{by_argument}");
        let by_variable = found(&folder, None, &[(ALIAS, "no.json")]).unwrap_err();
        assert!(
            by_variable.contains("no.json does not exist (chosen by the variable DEER_FLOW_EXTENSIONS"),
            "{by_variable}"
        );
    }

    #[test]
    fn the_project_root_comes_from_a_variable_or_is_the_working_directory() {
        // Contract 1.9.
        let folder = folder(&["a/mcp_config.json", "b/extensions_config.json"]);
        let root = |value| [("CARIBOU_PROJECT_ROOT", value), ("DEER_FLOW_PROJECT_ROOT", "b")];
        assert_eq!(
            found(&folder, None, &root("a")),
            Ok(Some(("a/mcp_config.json".to_owned(), PathChoice::ProjectRoot)))
        );
        assert_eq!(
            found(&folder, None, &root("")),
            Ok(Some(("b/extensions_config.json".to_owned(), PathChoice::ProjectRoot)))
        );
        let missing = found(&folder, None, &root("none")).unwrap_err();
        assert!(missing.contains("none is not a directory (chosen by the variable CARIBOU_PROJECT_ROOT)"), "{missing}");
        assert_eq!(found(&folder, None, &[]), Ok(None));
    }

    #[test]
    fn the_places_of_old_are_searched_last_from_either_folder() {
        // Contract 1.9.
        let places =
            ["backend/extensions_config.json", "extensions_config.json", "backend/mcp_config.json", "mcp_config.json"];
        for start in 0..places.len() {
            let folder = folder(&places[start..]);
            fs::create_dir_all(folder.path().join("backend")).unwrap();
            let from_root = found(&folder, None, &[]).unwrap().unwrap();
            let from_backend = found_from(&folder, "backend", None, &[]).unwrap().unwrap();
            assert!(
                places[start..].contains(&from_root.0.as_str()) && places[start..].contains(&from_backend.0.as_str())
            );
        }
        let old = folder(&["backend/mcp_config.json"]);
        assert_eq!(found(&old, None, &[]), Ok(Some(("backend/mcp_config.json".to_owned(), PathChoice::Legacy))));
        let above = folder(&["extensions_config.json", "backend/other"]);
        assert_eq!(
            found_from(&above, "backend", None, &[]),
            Ok(Some(("extensions_config.json".to_owned(), PathChoice::Legacy)))
        );
    }

    #[test]
    fn a_found_file_is_read_whole_and_names_itself() {
        let folder = folder(&["mcp_config.json"]);
        let found = Found { path: folder.path().join("mcp_config.json"), chosen_by: PathChoice::Argument };
        let text = read(found.clone()).unwrap();
        assert_eq!((text.source().file, text.source().text), (found.path.as_path(), b"{}".as_slice()));
    }

    #[test]
    fn what_cannot_be_read_is_told_with_path_and_choice() {
        let folder = folder(&["vanished/x"]);
        let refusal = |path: &str| {
            let found = Found { path: folder.path().join(path), chosen_by: PathChoice::Variable(OURS) };
            read(found).err().map(|error| error.to_string()).unwrap()
        };
        assert!(
            refusal("none.json").ends_with("does not exist (chosen by the variable CARIBOU_EXTENSIONS_CONFIG_PATH)")
        );
        assert!(refusal("vanished").contains("is not a regular file (chosen by"));
        fs::File::create(folder.path().join("large")).unwrap().set_len(MAX_DOCUMENT_BYTES as u64 + 1).unwrap();
        assert!(refusal("large").contains("is larger than 16777216 bytes (chosen by"));
    }
}
