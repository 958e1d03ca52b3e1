//! Whether Caribou's own settings can be used: every problem at once, with its place.

use super::finding::Finding;
use super::ground::Ground;
use crate::commands::check;
use crate::settings::Problem;

pub(super) fn check(ground: &Ground) -> Vec<Finding> {
    // What goes together is judged only once each is right by itself.
    let later = if ground.problems.is_empty() { check::refused_later(&ground.settings) } else { Vec::new() };
    let found: Vec<Finding> = ground.problems.iter().chain(&later).map(told).collect();
    if !found.is_empty() {
        return found;
    }
    vec![Finding::ok(match &ground.config_file {
        Some(file) => format!("{} and the environment can be used", file.display()),
        None => "no config.yaml is named; the environment and the defaults can be used".to_owned(),
    })]
}

fn told(problem: &Problem) -> Finding {
    let place = match (problem.line, problem.column) {
        (Some(line), Some(column)) => format!("{}:{line}:{column}", problem.file),
        _ => problem.file.clone(),
    };
    Finding::failed(format!("{place}: {}: {}", problem.path, problem.what), problem.mend.clone())
}
