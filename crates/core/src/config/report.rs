//! Collects the problems of one document while it is read.
//!
//! Owns the way from a byte offset to line and column, and the count that decides whether a server or the document is
//! lost; does not decide what is wrong. Never fails: past its bound (B1) problems are counted, no longer kept.

use std::cell::{Cell, RefCell};
use std::path::Path;

use super::problem::{Problem, Severity};

/// More problems than anybody reads; a hostile document could hold millions. Errors have a share of their own, so that
/// no flood of notes hides one.
const MAX_ERRORS: usize = 250;
const MAX_REMARKS: usize = 250;

/// Errors named in the reason of one server; the list of problems has the others.
const MAX_REASONS: usize = 5;

/// The problems found so far in one text.
pub(super) struct Report<'t> {
    file: String,
    text: &'t str,
    /// Byte offset of the first character of each line.
    lines: Vec<usize>,
    problems: RefCell<Vec<Problem>>,
    errors: Cell<usize>,
    remarks: Cell<usize>,
    load_fails: Cell<bool>,
    is_literal: Cell<bool>,
}

/// Where a report stood before something was read.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    problems: usize,
    errors: usize,
}

impl<'t> Report<'t> {
    pub(super) fn new(file: &Path, text: &'t str) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self {
            file: file.display().to_string(),
            text,
            lines,
            problems: RefCell::default(),
            errors: Cell::new(0),
            remarks: Cell::new(0),
            load_fails: Cell::new(false),
            is_literal: Cell::new(false),
        }
    }

    /// Line and column, both from 1, of a byte offset; the column counts characters.
    pub(super) fn position(&self, at: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= at).max(1);
        let start = self.lines[line - 1];
        let column = self.text.get(start..at).map_or(0, |before| before.chars().count());
        (line, column + 1)
    }

    /// The byte offset of a line from 1 and of a byte in it from 1, as serde_json counts.
    pub(super) fn offset(&self, line: usize, byte: usize) -> usize {
        let start = self.lines.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        let at = (start + byte.saturating_sub(1)).min(self.text.len());
        (0..=at).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0)
    }

    /// Whether a further problem is kept; when it is only counted, building its text is a waste.
    pub(super) fn keeps(&self, severity: Severity) -> bool {
        let (count, most) = self.share(severity);
        count.get() < most
    }

    fn share(&self, severity: Severity) -> (&Cell<usize>, usize) {
        match severity {
            Severity::Error => (&self.errors, MAX_ERRORS),
            Severity::Warning | Severity::Note => (&self.remarks, MAX_REMARKS),
        }
    }

    pub(super) fn add(&self, severity: Severity, at: usize, path: &str, what: impl Into<String>, mend: &str) {
        let (count, most) = self.share(severity);
        count.set(count.get() + 1);
        if count.get() > most {
            return;
        }
        let (line, column) = self.position(at);
        self.problems.borrow_mut().push(Problem {
            severity,
            file: self.file.clone(),
            line,
            column,
            path: path.to_owned(),
            what: what.into(),
            mend: mend.to_owned(),
        });
    }

    /// An error that costs the whole document.
    pub(super) fn fatal(&self, at: usize, path: &str, what: impl Into<String>, mend: &str) {
        self.add(Severity::Error, at, path, what, mend);
        self.fail_load();
    }

    pub(super) fn fail_load(&self) {
        self.load_fails.set(true);
    }

    pub(super) fn load_fails(&self) -> bool {
        self.load_fails.get()
    }

    /// Nothing in the text refers to an environment.
    pub(super) fn read_literally(&self) {
        self.is_literal.set(true);
    }

    pub(super) fn is_literal(&self) -> bool {
        self.is_literal.get()
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { problems: self.problems.borrow().len(), errors: self.errors.get() }
    }

    pub(super) fn has_errors_since(&self, mark: Mark) -> bool {
        self.errors.get() > mark.errors
    }

    /// What the errors since `mark` say, each after its path below `base`.
    pub(super) fn reason_since(&self, mark: Mark, base: &str) -> String {
        let problems = self.problems.borrow();
        let errors = problems[mark.problems..].iter().filter(|problem| problem.severity == Severity::Error);
        let mut sentences: Vec<String> = errors
            .take(MAX_REASONS)
            .map(|problem| match problem.path.strip_prefix(base).map(|below| below.trim_start_matches('.')) {
                Some("") => problem.what.clone(),
                Some(below) => format!("{below}: {}", problem.what),
                None => format!("{}: {}", problem.path, problem.what),
            })
            .collect();
        match self.errors.get() - mark.errors - sentences.len() {
            0 => {}
            more => sentences.push(format!("{more} more")),
        }
        sentences.join("; ")
    }

    /// Makes warnings of the errors since `mark`: they stand in a server that is switched off.
    pub(super) fn excuse_since(&self, mark: Mark) {
        for problem in &mut self.problems.borrow_mut()[mark.problems..] {
            if problem.severity == Severity::Error {
                problem.severity = Severity::Warning;
            }
        }
        self.errors.set(mark.errors);
    }

    /// All problems in the order of the text; when there were too many, the last one says so.
    pub(super) fn finish(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|problem| (problem.line, problem.column, problem.severity));
        let cut = self.errors.get() > MAX_ERRORS || self.remarks.get() > MAX_REMARKS;
        if let Some(last) = problems.last().filter(|_| cut) {
            let what = "there are more problems than are shown".to_owned();
            let path = "$".to_owned();
            problems.push(Problem { severity: Severity::Note, path, what, mend: String::new(), ..last.clone() });
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_offsets_count_bytes() {
        let report = Report::new(Path::new("x"), "{\n \"grün\": 1}");
        let at = report.text.find(':').unwrap();
        assert_eq!(report.position(at), (2, 8));
        assert_eq!(report.offset(2, 9), at);
        assert_eq!(report.offset(9, 9), report.text.len());
    }

    #[test]
    fn kept_problems_are_bounded_and_no_flood_of_remarks_hides_an_error() {
        let report = Report::new(Path::new("x"), "");
        for _ in 0..=MAX_REMARKS {
            report.add(Severity::Warning, 0, "$", "w", "");
        }
        let mark = report.mark();
        report.add(Severity::Error, 0, "$", "e", "");
        assert!(report.has_errors_since(mark));
        let problems = report.finish();
        assert_eq!(problems.len(), MAX_REMARKS + 2);
        assert_eq!(problems[0].severity, Severity::Error);
        assert_eq!(problems.last().map(|last| last.what.as_str()), Some("there are more problems than are shown"));
    }
}
