//! The two eras of the Model Context Protocol and the revisions that belong to them (mcp.md §1).

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a connection with an upstream is opened and what a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// 2024-11-05 to 2025-11-25: `initialize`, then a session.
    Legacy,
    /// 2026-07-28: no handshake, every request carries its own metadata.
    Modern,
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        })
    }
}

/// The setting `protocol` of a server: find the era out, or be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Ask the server (mcp.md §3.2 and §3.5).
    #[default]
    Auto,
    /// Open with `initialize`, never probe.
    Legacy,
    /// Never open with `initialize`.
    Modern,
}

/// The revision of the modern era that we speak.
pub const MODERN_VERSION: &str = "2026-07-28";

/// The newest revision opened by `initialize`; what we offer first.
pub const LATEST_LEGACY_VERSION: &str = "2025-11-25";

/// The revisions opened by `initialize`, newest first.
pub const LEGACY_VERSIONS: [&str; 4] = [LATEST_LEGACY_VERSION, "2025-06-18", "2025-03-26", "2024-11-05"];

/// The newest legacy revision that occurs in `text`: what a server means that refuses ours with a sentence.
pub fn newest_legacy_named_in(text: &str) -> Option<&'static str> {
    LEGACY_VERSIONS.into_iter().find(|version| text.contains(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_named_revision_wins() {
        assert_eq!(newest_legacy_named_in("supported: 2024-11-05, 2025-06-18"), Some("2025-06-18"));
        assert_eq!(newest_legacy_named_in("nothing here"), None);
    }
}
