//! Under which generation what is open was opened, the same for every replica (durability.md §4; invariants G1, G2).
//!
//! A generation is a pair: where its count began, and how far it came. Whoever holds another pair than the one in force
//! is out of date: *different* is stale, not *smaller*, so a store or a Redis that lost something costs an extra reset
//! and never hides one.

use std::fmt;
use std::time::Duration;

use crate::ids::ServerName;

/// How often the store is asked while nothing tells of changes: the bound of a cluster without Redis is 1.5 s.
pub const LOOK: Duration = Duration::from_secs(1);

/// How often it is asked while a subscription shows signs of life: only what was never told is found so.
pub const LOOK_BESIDE_SIGNAL: Duration = Duration::from_secs(10);

/// How often a subscription is asked for a sign of life.
pub const SIGNAL_PING: Duration = Duration::from_secs(5);

/// How long a sign of life counts: the next ping and its answer.
pub const SIGNAL_ALIVE: Duration = Duration::from_secs(7);

/// For how long what is open is served while the store does not tell whether it still counts.
pub const MAX_STALE: Duration = Duration::from_secs(60);

/// How long whoever finds itself out of touch waits for the store before it goes on with what it knows.
pub const CATCH_UP: Duration = Duration::from_millis(500);

/// How long a reset waits for the other replicas (architecture.md §10, reset answer).
pub const RESET_CONFIRMED: Duration = Duration::from_secs(2);

/// For how long one tries to tell the others: beyond it they have asked the store themselves.
pub const TELL_AT_MOST: Duration = Duration::from_secs(10);

/// Scopes of servers that are kept; the longest unchanged ones go first, and their absence is another generation.
pub const MAX_SCOPES: u32 = 10_000;

/// Revisions of the configuration that are kept.
pub const MAX_REVISIONS: u32 = 1_000;

/// The most revisions of one page: all that are kept.
pub const MAX_HISTORY_PAGE: u32 = MAX_REVISIONS;

/// What a generation is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResetScope {
    /// The stored document: it is to be read again, and only what differs counts.
    Document,
    /// Everything that was opened or found.
    Global,
    /// What was opened or found of one server.
    Server(ServerName),
}

impl ResetScope {
    /// The scope of this name; `None` = no version of Caribou known here has it.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "document" => Some(Self::Document),
            "global" => Some(Self::Global),
            _ => name.strip_prefix("server:").map(|server| Self::Server(ServerName::from(server))),
        }
    }
}

impl fmt::Display for ResetScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document => f.write_str("document"),
            Self::Global => f.write_str("global"),
            Self::Server(server) => write!(f, "server:{server}"),
        }
    }
}

/// A generation. `Display` is the form that is told to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResetGeneration {
    /// Where the count began: drawn anew whenever it begins again.
    pub origin: [u8; 16],
    /// How far it came.
    pub counter: i64,
}

impl ResetGeneration {
    /// Reads what `Display` wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let (hex, counter) = text.split_once(':')?;
        if hex.len() != 32 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let origin = u128::from_str_radix(hex, 16).ok()?.to_be_bytes();
        Some(Self { origin, counter: counter.parse().ok()? })
    }

    /// Whether this one is in force wherever `other` was or is: the same count, and no earlier.
    pub fn includes(self, other: Self) -> bool {
        self.origin == other.origin && self.counter >= other.counter
    }
}

impl fmt::Display for ResetGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}:{}", u128::from_be_bytes(self.origin), self.counter)
    }
}

/// What a generation that somebody told of means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is the one that is known.
    Known,
    /// It came after the one that is known: what was opened under that one is out of date.
    Newer,
    /// Another count, or an earlier place in the same one: whoever told it has an old copy, or we have. The store knows.
    Doubtful,
}

/// Judges a generation that somebody told of who is not the store.
pub fn told(known: Option<ResetGeneration>, told: ResetGeneration) -> Told {
    match known {
        Some(known) if known == told => Told::Known,
        Some(known) if told.includes(known) => Told::Newer,
        _ => Told::Doubtful,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(origin: u8, counter: i64) -> ResetGeneration {
        ResetGeneration { origin: [origin; 16], counter }
    }

    #[test]
    fn what_is_told_is_newer_or_doubtful_and_never_ignored() {
        // Durability.md §4: stale means different.
        for (known, heard, expected) in [
            (Some(at(1, 5)), at(1, 5), Told::Known),
            (Some(at(1, 5)), at(1, 6), Told::Newer),
            (Some(at(1, 5)), at(1, 4), Told::Doubtful),
            (Some(at(1, 5)), at(2, 5), Told::Doubtful),
            (Some(at(1, 5)), at(2, 9), Told::Doubtful),
            (None, at(1, 1), Told::Doubtful),
        ] {
            assert_eq!(told(known, heard), expected, "{known:?} {heard}");
        }
    }

    #[test]
    fn scopes_and_generations_are_read_back() {
        for scope in [ResetScope::Document, ResetScope::Global, ResetScope::Server("a b:c".into())] {
            assert_eq!(ResetScope::parse(&scope.to_string()), Some(scope));
        }
        assert_eq!(ResetScope::parse("user:ann"), None);
        for generation in [at(0, 0), at(0xfe, i64::MAX)] {
            assert_eq!(ResetGeneration::parse(&generation.to_string()), Some(generation));
        }
        for wrong in ["", "1:2", &format!("{}:x", "0".repeat(32)), &format!("+{}:1", "0".repeat(31))] {
            assert_eq!(ResetGeneration::parse(wrong), None, "{wrong}");
        }
    }
}
