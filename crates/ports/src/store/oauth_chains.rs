//! Chains of rotating refresh tokens: one row for each connection, shared by all replicas (durability.md 3.2).
//!
//! Every method is one commit, and compares what its caller saw: the generation always, so that whoever lost changes
//! nothing (invariants O1, O2). Times are the store's. Tokens come and go sealed.

use std::time::Duration;

use caribou_core::ids::{BootId, ServerName};
use caribou_core::oauth::Fingerprint;
use caribou_core::oauth::chain_state::{AccessKind, ChainState};

use super::StoreError;
use crate::BoxFuture;
use crate::vault::Place;

/// The stored chains.
pub trait OAuthChains: Send + Sync + 'static {
    /// The chain of a connection; `None` = it was never started.
    fn load_chain(&self, connection: ServerName) -> BoxFuture<'_, Result<Option<StoredChain>, StoreError>>;

    /// All chains, by connection.
    fn list_chains(&self) -> BoxFuture<'_, Result<Vec<StoredChain>, StoreError>>;

    /// Starts a chain from its seed: where there is none, or over exactly the generation that was seen, whose tokens go.
    /// Whether it did.
    fn start_chain(&self, start: StartChain) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Stores the intent to present the token of this generation, with a lease (R1). Only over what was seen, only when
    /// no lease runs, and never for a chain that needs a person. Whether it did; then the lease's number is one more
    /// than the one seen.
    fn begin_refresh(&self, begin: BeginRefresh) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Lets the lease of a presentation under way run for another `length` from now. Whether it is still held.
    fn renew_refresh(&self, lease: ChainLease, length: Duration) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Stores what a presentation brought, as the next generation. Fenced by the generation alone: a lease that ended
    /// meanwhile, or is somebody else's, does not void a successor that was received (R2, invariant O2). Whether it did.
    fn finish_refresh(&self, successor: Successor) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Stores how a presentation failed, if it is still the newest one of this generation (R5). Tokens stay. Whether it
    /// did.
    fn settle_refresh(&self, failure: FailedRefresh) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Stores what becomes of a presentation that its holder never settled: unknown, or a person must act. Only over
    /// what was seen, and only when no lease runs. Whether it did.
    fn give_up_refresh(&self, verdict: Verdict) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Deletes exactly this chain. Whether it was there.
    fn forget_chain(&self, grant: GrantId) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Replaces both ciphertexts by the same tokens under another key, if exactly `before` stands there. Whether it did.
    fn reseal_chain(&self, before: StoredChain, after: SealedTokens) -> BoxFuture<'_, Result<bool, StoreError>>;
}

/// One life of a row, never used again: what is left of a chain that was deleted meets no later one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrantId(pub String);

/// A chain as it stands. Durations that are over are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredChain {
    /// Which life of its row.
    pub grant: GrantId,
    /// Whose tokens: the name of a server, or the runtime name of a personal connection.
    pub connection: ServerName,
    /// What it was started from.
    pub seed: Fingerprint,
    /// Grows with every successor and every new start, and never falls.
    pub generation: u64,
    /// Where it stands.
    pub state: ChainState,
    /// Whether a successor of the refresh token ever came since it was started.
    pub rotated: bool,
    /// Its tokens.
    pub tokens: SealedTokens,
    /// How the access token was asked for.
    pub access_kind: Option<AccessKind>,
    /// How long the access token lives.
    pub access_left: Duration,
    /// How long until it is refreshed in the background.
    pub until_ahead: Duration,
    /// How many presentations were begun.
    pub lease_seq: i64,
    /// Who began the last one whose outcome is not known.
    pub lease_owner: Option<BootId>,
    /// How long its lease runs.
    pub lease_left: Duration,
    /// Whether the life of its holder is known to have ended.
    pub is_holder_dead: bool,
    /// How long ago it began.
    pub since_begun: Duration,
    /// Presentations of this generation of which nobody knows what became.
    pub presented: u32,
    /// Failures in a row.
    pub failures: u32,
    /// The last of them, for people.
    pub last_error: Option<String>,
    /// For how long nobody may present it.
    pub retry_in: Duration,
    /// When the row last changed, in microseconds of the Unix epoch.
    pub changed_at_us: i64,
}

impl StoredChain {
    /// Where a token of this generation stands: bound to its row, so that neither another connection's nor an older
    /// token is taken for it (invariant O3).
    pub fn place(&self, column: TokenColumn, generation: u64) -> Place {
        let column = match column {
            TokenColumn::Refresh => "refresh_ct",
            TokenColumn::Access => "access_ct",
        };
        Place { table: "mcp_oauth_chain", column, row: self.grant.0.clone(), generation }
    }

    /// What a new start has to find.
    pub fn standing(&self) -> Standing {
        Standing { grant: self.grant.clone(), generation: self.generation, lease_seq: self.lease_seq }
    }
}

/// Which of both tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenColumn {
    /// The refresh token.
    Refresh,
    /// The access token, rendered as a header.
    Access,
}

/// Both tokens, sealed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealedTokens {
    /// The refresh token; `None` = the configured one is the first to be presented.
    pub refresh: Option<Vec<u8>>,
    /// The access token; `None` = none came yet.
    pub access: Option<Vec<u8>>,
}

/// What was seen of a chain, and has to stand there still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The row.
    pub grant: GrantId,
    /// Its generation.
    pub generation: u64,
    /// The presentations begun so far.
    pub lease_seq: i64,
}

/// A new start.
#[derive(Clone, Debug)]
pub struct StartChain {
    /// Whose.
    pub connection: ServerName,
    /// From what.
    pub seed: Fingerprint,
    /// Over what; `None` = over nothing.
    pub over: Option<Standing>,
}

/// An intent.
#[derive(Clone, Debug)]
pub struct BeginRefresh {
    /// What was seen.
    pub seen: Standing,
    /// The life that presents.
    pub owner: BootId,
    /// For how long nobody else may.
    pub lease: Duration,
}

/// The lease of one presentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLease {
    /// The row.
    pub grant: GrantId,
    /// The generation presented.
    pub generation: u64,
    /// Which presentation.
    pub seq: i64,
    /// Whose.
    pub owner: BootId,
}

/// What a presentation brought.
#[derive(Clone, Debug)]
pub struct Successor {
    /// The row.
    pub grant: GrantId,
    /// The generation that was presented.
    pub generation: u64,
    /// The tokens of the next one.
    pub tokens: SealedTokens,
    /// How the access token was asked for.
    pub access_kind: AccessKind,
    /// How long it lives from now.
    pub access_left: Duration,
    /// How long until it is refreshed in the background.
    pub until_ahead: Duration,
    /// Whether the provider gave a successor of the refresh token.
    pub rotated: bool,
}

/// How a presentation failed.
#[derive(Clone, Debug)]
pub struct FailedRefresh {
    /// Which one.
    pub lease: ChainLease,
    /// Where the chain stands then: any but in flight.
    pub state: ChainState,
    /// Why, for people.
    pub error: String,
    /// For how long nobody may present the token.
    pub retry_in: Duration,
}

/// What becomes of a presentation that was never settled.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What was seen.
    pub seen: Standing,
    /// Unknown, or a person must act.
    pub state: ChainState,
    /// Why, for people.
    pub error: String,
    /// For how long nobody may present the token.
    pub retry_in: Duration,
}
