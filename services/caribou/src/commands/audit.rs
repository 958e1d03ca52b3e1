//! `caribou audit`: who did what, the newest first. The record is kept by a replica that serves, so one is named.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde::Deserialize;
use url::form_urlencoded::Serializer;

use super::arguments::Target;
use super::gateway::Gateway;
use super::output;
use super::usage::Usage;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Only what was done for this user
    #[arg(long)]
    user: Option<String>,
    /// Only what this principal did: the id of a key, the subject of a token
    #[arg(long, value_name = "PRINCIPAL")]
    by: Option<String>,
    /// Only with this MCP server
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// Only calls of the tool of this name
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only what ended so: ok, denied, timeout, ...
    #[arg(long)]
    outcome: Option<String>,
    /// Only rows before this one, for the next page
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
    /// The most rows
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    target: Target,
}

/// The answer of `GET /api/mcp/audit`.
#[derive(Deserialize)]
struct Answer {
    rows: Vec<Row>,
    next: Option<i64>,
}

#[derive(Deserialize)]
struct Row {
    at_ms: i64,
    principal: String,
    user_id: String,
    thread_id: String,
    action: String,
    server: String,
    tool: String,
    outcome: String,
    duration_ms: i64,
    request_id: String,
    door: String,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.target.server.is_none() {
        bail!(Usage("name the replica whose record is read with --server or CARIBOU_SERVER"));
    }
    let path = format!("/api/mcp/audit?{}", arguments.query());
    let answer = Gateway::once(&arguments.target, async |gateway| gateway.get(&path).await).await?;
    let answer = String::from_utf8_lossy(&answer);
    if arguments.target.json {
        output::line(answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Answer { rows, next } = serde_json::from_str(&answer)?;
    let headings = ["Time", "By", "Door", "User", "Thread", "Action", "Server", "Tool", "Outcome", "Took", "Request"];
    output::table(headings, &rows.into_iter().map(row).collect::<Vec<_>>())?;
    if let Some(next) = next {
        output::note(format_args!("there may be more: --before {next}"));
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn query(&self) -> String {
        let mut query = Serializer::new(String::new());
        let wanted = [
            ("principal", &self.by),
            ("user_id", &self.user),
            ("server", &self.from),
            ("tool", &self.tool),
            ("outcome", &self.outcome),
        ];
        for (name, value) in wanted.into_iter().filter_map(|(name, value)| value.as_ref().map(|value| (name, value))) {
            query.append_pair(name, value);
        }
        if let Some(before) = self.before {
            query.append_pair("before", &before.to_string());
        }
        query.append_pair("limit", &self.limit.to_string()).finish()
    }
}

fn row(row: Row) -> [String; 11] {
    [
        time(row.at_ms),
        row.principal,
        row.door,
        row.user_id,
        row.thread_id,
        row.action,
        row.server,
        row.tool,
        row.outcome,
        format!("{} ms", row.duration_ms),
        row.request_id,
    ]
}

/// UTC to the second, as RFC 3339 writes it.
fn time(at_ms: i64) -> String {
    let seconds = at_ms.div_euclid(1_000);
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3_600, of_day / 60 % 60, of_day % 60)
}

/// The date so many days after the first of January 1970. Years are counted from March on, so that the leap day is
/// the last of its year.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468; // from the first of March of the year 0
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (at_ms, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_999, "2000-02-28T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_798_761_599_000, "2026-12-31T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(time(at_ms), expected);
        }
    }
}
