//! Which revision to speak, from what a server says (mcp.md §2.3).
//!
//! Owns the reading of version lists in results and errors; the revisions themselves stand in `core::era`.

use caribou_core::era::{LEGACY_VERSIONS, MODERN_VERSION, newest_legacy_named_in};
use caribou_ports::mcp::CallError;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::errors;

/// The versions an error lists in `data.supported`, as servers of both eras write it.
pub(crate) fn listed_in(error: &CallError) -> Vec<String> {
    #[derive(Deserialize)]
    struct Data {
        #[serde(default)]
        supported: Vec<String>,
    }
    let CallError::Rpc { data: Some(data), .. } = error else { return Vec::new() };
    serde_json::from_str::<Data>(data.get()).map(|data| data.supported).unwrap_or_default()
}

/// The newest legacy revision of a list.
pub(crate) fn newest_legacy_of(versions: &[String]) -> Option<&'static str> {
    LEGACY_VERSIONS.into_iter().find(|ours| versions.iter().any(|theirs| theirs == ours))
}

/// Whether a list holds the modern revision that we speak.
pub(crate) fn holds_modern(versions: &[String]) -> bool {
    versions.iter().any(|version| version == MODERN_VERSION)
}

/// Whether this error refuses our modern revision and lists it as one that is spoken: then it is offered once more
/// (mcp.md §2.3).
pub(crate) fn refuses_what_it_lists(error: &CallError) -> bool {
    matches!(error, CallError::Rpc { code: errors::VERSION_UNSUPPORTED, .. }) && holds_modern(&listed_in(error))
}

/// Why there is no way on with a server that lists these revisions, none of the legacy era.
pub(crate) fn nothing_common(server: &str, listed: &[String]) -> String {
    if holds_modern(listed) {
        return format!("{server} refuses revision {MODERN_VERSION}, which it lists as one that it speaks");
    }
    format!("{server} speaks {:.200}, of which we speak none", format!("{listed:?}"))
}

/// The revision to offer after `initialize` with `offered` was refused with `error`: the newest other one that the
/// error names in its data or, as many servers do, in its message.
pub(crate) fn to_offer_after(offered: &str, error: &CallError) -> Option<&'static str> {
    let CallError::Rpc { message, data, .. } = error else { return None };
    let listed = newest_legacy_of(&listed_in(error));
    let named = || {
        // The refused revision is usually repeated in the message, before the ones that are supported.
        let text = format!("{message} {}", data.as_ref().map_or("", |data| data.get())).replace(offered, "");
        newest_legacy_named_in(&text)
    };
    listed.or_else(named).filter(|version| *version != offered)
}

/// Whether this error tells that the server is of the modern era.
pub(crate) fn tells_modern(error: &CallError) -> bool {
    matches!(error, CallError::Rpc { code, .. } if errors::is_modern(*code))
}

/// The member `supportedVersions` of a `DiscoverResult`; `None` when the result is something else.
pub(crate) fn of_discover_result(result: &RawValue) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct DiscoverResult {
        supported_versions: Vec<String>,
    }
    serde_json::from_str::<DiscoverResult>(result.get()).ok().map(|result| result.supported_versions)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn refused(message: &str, data: Option<&str>) -> CallError {
        let data = data.map(|data| Arc::from(RawValue::from_string(data.to_owned()).expect("valid JSON")));
        CallError::Rpc { code: -32602, message: message.to_owned(), data }
    }

    #[test]
    fn the_newest_other_revision_named_by_a_refusal_is_offered() {
        let listed = refused("no", Some(r#"{"supported":["2024-11-05","2025-06-18"],"requested":"2025-11-25"}"#));
        assert_eq!(to_offer_after("2025-11-25", &listed), Some("2025-06-18"));
        let told = refused("2025-11-25 is not among 2025-06-18, 2025-03-26", None);
        assert_eq!(to_offer_after("2025-11-25", &told), Some("2025-06-18"));
    }

    #[test]
    fn a_refusal_that_names_nothing_new_is_final() {
        assert_eq!(to_offer_after("2025-11-25", &refused("2025-11-25? never heard of it", None)), None);
        assert_eq!(to_offer_after("2025-11-25", &CallError::Malformed("2025-06-18".to_owned())), None);
    }

    #[test]
    fn a_refusal_of_a_revision_may_list_that_revision() {
        let refused = |code, data: &str| {
            let data = Some(Arc::from(RawValue::from_string(data.to_owned()).expect("valid JSON")));
            refuses_what_it_lists(&CallError::Rpc { code, message: "no".to_owned(), data })
        };
        assert!(refused(-32022, r#"{"supported":["2031-01-01","2026-07-28"],"requested":"2026-07-28"}"#));
        assert!(!refused(-32022, r#"{"supported":["2025-11-25"]}"#));
        assert!(!refused(-32602, r#"{"supported":["2026-07-28"]}"#));
    }

    #[test]
    fn a_discover_result_is_told_from_any_other_result() {
        let raw = |json: &str| RawValue::from_string(json.to_owned()).expect("valid JSON");
        let versions = of_discover_result(&raw(r#"{"supportedVersions":["2026-07-28"],"x":1}"#)).expect("recognised");
        assert!(holds_modern(&versions) && newest_legacy_of(&versions).is_none());
        assert!(of_discover_result(&raw("{}")).is_none());
        assert!(of_discover_result(&raw("null")).is_none());
    }
}
