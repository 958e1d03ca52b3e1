//! What a check found: how the thing is, and what to do about it.

use serde::Serialize;

/// How something is, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// As it should be.
    Ok,
    /// It was not looked at.
    Skipped,
    /// It works, but hardly as meant.
    Warning,
    /// Something does not work.
    Failed,
}

impl State {
    /// The word shown.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Skipped => "skipped",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// How it is.
    pub(super) state: State,
    /// Which of several things of one kind, such as the name of a server.
    pub(super) subject: Option<String>,
    /// How it is, in words.
    pub(super) what: String,
    /// What to do next.
    pub(super) mend: Option<String>,
}

impl Finding {
    /// It is as it should be.
    pub(super) fn ok(what: impl Into<String>) -> Self {
        Self { state: State::Ok, subject: None, what: what.into(), mend: None }
    }

    /// It was not looked at; `mend` = how to have it looked at.
    pub(super) fn skipped(what: impl Into<String>, mend: Option<&str>) -> Self {
        Self { state: State::Skipped, subject: None, what: what.into(), mend: mend.map(str::to_owned) }
    }

    /// It works, but hardly as meant.
    pub(super) fn warning(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { state: State::Warning, subject: None, what: what.into(), mend: Some(mend.into()) }
    }

    /// It does not work.
    pub(super) fn failed(what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { state: State::Failed, subject: None, what: what.into(), mend: Some(mend.into()) }
    }

    /// The same of this one of several.
    pub(super) fn about(self, subject: impl Into<String>) -> Self {
        Self { subject: Some(subject.into()), ..self }
    }
}
