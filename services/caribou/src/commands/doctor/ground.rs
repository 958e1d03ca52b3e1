//! What every check stands on: the settings as far as they could be read, and what was asked for.

use std::path::PathBuf;
use std::time::Duration;

use super::finding::Finding;
use crate::settings::{Problem, Settings};

/// What every check stands on.
pub(super) struct Ground {
    /// The settings, a wrong one left as the sources below it say.
    pub(super) settings: Settings,
    /// What is wrong with them.
    pub(super) problems: Vec<Problem>,
    /// The file they were read from.
    pub(super) config_file: Option<PathBuf>,
    /// How long one check may take.
    pub(super) deadline: Duration,
    /// Whether servers are left alone.
    pub(super) offline: bool,
}

impl Ground {
    /// Why a check that goes by these settings or sections cannot tell anything; `None` = it can.
    pub(super) fn spoiled(&self, paths: &[&str]) -> Option<Finding> {
        let touches = |problem: &Problem, path: &str| {
            let wrong = problem.path.trim_start_matches('$').trim_start_matches('.');
            let is_below = |inner: &str, outer: &str| {
                inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            wrong.is_empty() || is_below(wrong, path) || is_below(path, wrong)
        };
        let wrong = self.problems.iter().find(|problem| paths.iter().any(|path| touches(problem, path)))?;
        let what = match wrong.path.as_str() {
            "$" => "the settings could not be read".to_owned(),
            path => format!("the setting `{}` is wrong", path.trim_start_matches("$.")),
        };
        Some(Finding::skipped(what, Some("mend the settings first")))
    }

    /// What a check says that was not done in time.
    pub(super) fn late(&self) -> Finding {
        let seconds = self.deadline.as_secs_f64();
        Finding::failed(
            format!("not known after {seconds} s"),
            "look at what it waits for, or give it more `--timeout`",
        )
    }
}

#[cfg(test)]
mod tests {
    use caribou_core::config::Severity;

    use super::*;

    #[test]
    fn a_check_is_skipped_for_a_wrong_setting_that_it_goes_by_and_for_no_other() {
        let ground = |path: &str| Ground {
            settings: Settings::default(),
            problems: vec![Problem {
                severity: Severity::Error,
                file: "f".to_owned(),
                line: None,
                column: None,
                path: path.to_owned(),
                what: String::new(),
                mend: String::new(),
            }],
            config_file: None,
            deadline: Duration::from_secs(1),
            offline: false,
        };
        assert!(ground("$").spoiled(&["redis"]).is_some(), "nothing was read");
        assert!(ground("$.redis.url").spoiled(&["redis"]).is_some());
        assert!(ground("$.redis").spoiled(&["redis.url"]).is_some());
        assert!(ground("$.redis_url").spoiled(&["redis"]).is_none());
        assert!(ground("$.log.level").spoiled(&["database_url", "database"]).is_none());
    }
}
