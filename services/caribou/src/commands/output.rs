//! How answers are shown: tables on a terminal, aligned text in a pipe, and signs of life during a wait.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write as _};
use std::time::Duration;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{ContentArrangement, Table};
use indicatif::ProgressBar;
use rustix::termios::tcgetwinsize;

/// A shorter wait needs no sign of life.
const PATIENCE: Duration = Duration::from_millis(300);

/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(100);

/// Writes one line to stdout.
///
/// # Errors
/// When nobody reads stdout any more.
pub(super) fn line(text: impl Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

/// Writes one line to stderr; that nobody reads it is no reason to fail.
pub(super) fn note(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes rows under their headings.
///
/// # Errors
/// When nobody reads stdout any more.
pub(super) fn table<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> io::Result<()> {
    let text = if io::stdout().is_terminal() { drawn(headings, rows) } else { aligned(headings, rows) };
    line(text)
}

fn drawn<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY).set_header(headings);
    if let Ok(size) = tcgetwinsize(io::stdout()) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(size.ws_col);
    }
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell)));
    }
    table.to_string()
}

/// Columns of equal width, two spaces apart, no line ending in spaces: made to be cut by other programs.
fn aligned<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let headings = headings.map(str::to_uppercase);
    let rows: Vec<_> = rows.iter().map(|row| row.each_ref().map(|cell| printable(cell))).collect();
    let lines = || std::iter::once(&headings).chain(&rows);
    let mut widths = [0; N];
    for row in lines() {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let write = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines().map(write).collect::<Vec<_>>().join("\n")
}

/// A span in its largest unit.
pub(super) fn age(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// One line of text without what would move a terminal's cursor: cells hold texts of upstream servers.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// Waits for `work`, with a spinner on a terminal's stderr when it takes a while.
pub(super) async fn wait<F: Future>(message: &'static str, work: F) -> F::Output {
    let mut work = std::pin::pin!(work);
    if !io::stderr().is_terminal() {
        return work.await;
    }
    if let Ok(done) = tokio::time::timeout(PATIENCE, &mut work).await {
        return done;
    }
    let spinner = ProgressBar::new_spinner().with_message(message);
    spinner.enable_steady_tick(TURN);
    let done = work.await;
    spinner.finish_and_clear();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_shown_in_its_largest_unit() {
        let ages = [0, 59_999, 60_000, 7_199_000, 86_400_000].map(|ms| age(Duration::from_millis(ms)));
        assert_eq!(ages, ["0 s", "59 s", "1 min", "1 h", "1 d"]);
    }

    #[test]
    fn piped_rows_are_aligned_and_end_without_spaces() {
        let rows = [["demo".to_owned(), "ok".to_owned()], ["a\x1b[2Jb\nc".to_owned(), String::new()]];
        assert_eq!(aligned(["Name", "State"], &rows), "NAME      STATE\ndemo      ok\na [2Jb c");
    }
}
