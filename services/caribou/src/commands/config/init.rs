//! `caribou config init`: both configuration files to begin with. Never writes over a file that is there.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::examples::EXAMPLES;
use super::settings_file::settings_file;
use crate::commands::output;

/// These files will hold secrets.
const MODE: u32 = 0o600;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Where to write them
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// What became of each file.
#[derive(Default, Serialize)]
struct Done {
    written: Vec<String>,
    /// They were there already.
    kept: Vec<String>,
}

pub(in crate::commands) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let done = write_all(&arguments.dir)?;
    if arguments.json {
        output::line(serde_json::to_string(&done)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for file in &done.written {
        output::line(format_args!("wrote {file}"))?;
    }
    for file in &done.kept {
        output::line(format_args!("left {file} as it is"))?;
    }
    output::note("all servers are switched off: `caribou config enable NAME` switches one on, `caribou check` checks");
    Ok(ExitCode::SUCCESS)
}

fn write_all(folder: &Path) -> anyhow::Result<Done> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let settings = settings_file();
    let files = [
        ("config.yaml", settings.as_str()),
        ("extensions_config.json", EXAMPLES),
        ("extensions_config.example.json", EXAMPLES),
    ];
    let mut done = Done::default();
    for (name, text) in files {
        let file = folder.join(name);
        let shown = file.display().to_string();
        match write_new(&file, text) {
            Ok(()) => done.written.push(shown),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => done.kept.push(shown),
            Err(error) => return Err(error).with_context(|| format!("cannot write {shown}")),
        }
    }
    Ok(done)
}

fn write_new(file: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(file)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_files_are_written_once_and_never_over_another() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        assert_eq!(write_all(&folder).unwrap().written.len(), 3);
        fs::write(folder.join("config.yaml"), "mine").unwrap();
        let again = write_all(&folder).unwrap();
        assert_eq!((again.written.len(), again.kept.len()), (0, 3));
        assert_eq!(fs::read_to_string(folder.join("config.yaml")).unwrap(), "mine");
    }
}
