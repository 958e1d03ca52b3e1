//! From the command line to an exit code: 0 when nothing failed, 1 when something did.

use std::io::{IsTerminal as _, stderr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use caribou_core::config::Severity;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use indicatif::ProgressBar;

use super::examine::{Board, examine, is_well};
use super::ground::Ground;
use super::show;
use crate::commands::arguments::SettingsArguments;
use crate::commands::output;
use crate::settings::{Loaded, Problem, Settings};

/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(100);

/// The longest that one check may be given.
const LONGEST_SECONDS: u64 = 3_600;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    settings: SettingsArguments,
    /// Leave servers alone: none is started, asked, or looked up by its name
    #[arg(long)]
    offline: bool,
    /// How long each check may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = seconds())]
    timeout: u64,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

fn seconds() -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(1..=LONGEST_SECONDS)
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let config_file = arguments.settings.config_file();
    let Loaded { settings, problems } =
        arguments.settings.load(None).unwrap_or_else(|error| unread(config_file.as_ref(), &error));
    let deadline = Duration::from_secs(arguments.timeout);
    let ground = Ground { settings, problems, config_file, deadline, offline: arguments.offline };
    let bar = stderr().is_terminal().then(ProgressBar::new_spinner);
    if let Some(bar) = &bar {
        bar.enable_steady_tick(TURN);
    }
    let reports = Box::pin(examine(&ground, &Board::new(bar.clone()))).await;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    if arguments.json {
        output::line(show::json(&reports)?)?;
    } else {
        for line in show::text(&reports) {
            output::line(line)?;
        }
    }
    Ok(if is_well(&reports) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A file that cannot be read leaves no setting known.
fn unread(file: Option<&PathBuf>, error: &anyhow::Error) -> Loaded {
    let problem = Problem {
        severity: Severity::Error,
        file: file.map_or_else(|| "settings".to_owned(), |file| file.display().to_string()),
        line: None,
        column: None,
        path: "$".to_owned(),
        what: format!("{error:#}"),
        mend: "see that `--config` or CARIBOU_CONFIG names a file that this user can read".to_owned(),
    };
    Loaded { settings: Settings::default(), problems: vec![problem] }
}
