//! Progress tokens: which running call a report belongs to.
//!
//! Owns the reading of `progressToken` in a notification and its removal from what is passed on: tokens are of one
//! hop only (mcp.md §14.2), everything else in a report stays as the server wrote it (invariant W1).

use std::fmt;

use caribou_ports::mcp::ProgressSink;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Where the progress of one request goes.
#[derive(Clone)]
pub(crate) struct ProgressRoute {
    /// The token in the request's `_meta`, unique in its session.
    pub(crate) token: u64,
    /// Who listens.
    pub(crate) sink: ProgressSink,
}

/// The token of a request that reports no progress: its sink hears what it listens to.
const LISTENER: u64 = 0;

impl ProgressRoute {
    /// For a request that listens.
    pub(crate) fn listener(sink: ProgressSink) -> Self {
        Self { token: LISTENER, sink }
    }

    /// Whether it is such a one.
    pub(crate) fn listens(&self) -> bool {
        self.token == LISTENER
    }

    /// The token to send.
    pub(crate) fn sent(&self) -> Option<u64> {
        Some(self.token).filter(|_| !self.listens())
    }
}

impl fmt::Debug for ProgressRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgressRoute({})", self.token)
    }
}

/// Splits the `params` of `notifications/progress` into our token and the report without it. `None` when the token is
/// missing or none of ours.
pub(crate) fn split(params: &RawValue) -> Option<(u64, Box<RawValue>)> {
    let mut json = serde_json::Deserializer::from_str(params.get());
    let (token, report) = json.deserialize_map(Members).ok()?;
    // A token that comes back as a string is accepted, as with ids.
    let token = token?.trim_matches('"').parse().ok()?;
    Some((token, RawValue::from_string(report).ok()?))
}

/// Copies the members of an object except the token, each as raw text.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = (Option<&'de str>, String);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the parameters of a progress notification")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut token = None;
        let mut report = String::from("{");
        while let Some((key, value)) = members.next_entry::<&'de RawValue, &'de RawValue>()? {
            if key.get() == "\"progressToken\"" {
                token = Some(value.get());
                continue;
            }
            if report.len() > 1 {
                report.push(',');
            }
            report.extend([key.get(), ":", value.get()]);
        }
        report.push('}');
        Ok((token, report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_text(params: &str) -> Option<(u64, String)> {
        let raw: &RawValue = serde_json::from_str(params).expect("valid JSON");
        split(raw).map(|(token, report)| (token, report.get().to_owned()))
    }

    #[test]
    fn the_token_goes_and_the_rest_stays_as_it_came() {
        let split = split_text(r#"{"z":1.0,"progressToken":7,"message":"\ud800","total": 9223372036854775809}"#);
        assert_eq!(split, Some((7, r#"{"z":1.0,"message":"\ud800","total":9223372036854775809}"#.to_owned())));
        assert_eq!(split_text(r#"{"progressToken":"12"}"#), Some((12, "{}".to_owned())));
    }

    #[test]
    fn a_report_without_a_token_of_ours_is_nobodys() {
        for params in [r#"{"progress":1}"#, r#"{"progressToken":"bogus-1"}"#, r#"{"progressToken":-1}"#, "[1]", "null"]
        {
            assert_eq!(split_text(params), None, "{params}");
        }
    }
}
