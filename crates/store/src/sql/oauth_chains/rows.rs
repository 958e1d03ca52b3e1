//! Chains as they are stored, and what they mean.

use caribou_core::ids::{BootId, ServerName};
use caribou_core::oauth::Fingerprint;
use caribou_core::oauth::chain_state::{AccessKind, ChainState};
use caribou_ports::store::{GrantId, SealedTokens, StoreError, StoredChain};
use uuid::Uuid;

use crate::sql::replicas::duration;
use crate::sql::row::row;

row! {
    /// One chain.
    ChainRow {
        grant_id: Uuid,
        connection: String,
        seed: Vec<u8>,
        generation: i64,
        state: i16,
        rotated: bool,
        refresh: Option<Vec<u8>>,
        access: Option<Vec<u8>>,
        access_kind: Option<Vec<u8>>,
        access_left_ms: Option<i64>,
        until_ahead_ms: Option<i64>,
        lease_seq: i64,
        lease_owner: Option<Uuid>,
        lease_left_ms: Option<i64>,
        is_holder_dead: bool,
        since_begun_ms: Option<i64>,
        presented: i32,
        failures: i32,
        last_error: Option<String>,
        retry_in_ms: Option<i64>,
        changed_at_us: i64,
    }
}

/// The stored number of a state.
pub(super) fn number(state: ChainState) -> i16 {
    match state {
        ChainState::Idle => 0,
        ChainState::InFlight => 1,
        ChainState::Unknown => 2,
        ChainState::ReauthNeeded => 3,
    }
}

/// What a row means.
pub(super) fn stored(row: ChainRow) -> Result<StoredChain, StoreError> {
    let state = ChainState::ALL.into_iter().find(|state| number(*state) == row.state);
    let of_count = |count: i32| u32::try_from(count).unwrap_or(0);
    let of_ms = |ms: Option<i64>| duration(ms.unwrap_or(0));
    Ok(StoredChain {
        grant: GrantId(row.grant_id.to_string()),
        connection: ServerName::new(&*row.connection),
        seed: Fingerprint(digest(&row.seed)?),
        generation: u64::try_from(row.generation).map_err(|_| strange())?,
        state: state.ok_or_else(strange)?,
        rotated: row.rotated,
        tokens: SealedTokens { refresh: row.refresh, access: row.access },
        access_kind: row.access_kind.map(|kind| digest(&kind).map(AccessKind)).transpose()?,
        access_left: of_ms(row.access_left_ms),
        until_ahead: of_ms(row.until_ahead_ms),
        lease_seq: row.lease_seq,
        lease_owner: row.lease_owner.map(|owner| BootId::new(owner.to_string())),
        lease_left: of_ms(row.lease_left_ms),
        is_holder_dead: row.is_holder_dead,
        since_begun: of_ms(row.since_begun_ms),
        presented: of_count(row.presented),
        failures: of_count(row.failures),
        last_error: row.last_error,
        retry_in: of_ms(row.retry_in_ms),
        changed_at_us: row.changed_at_us,
    })
}

/// A grant as it is stored.
pub(super) fn grant(grant: &GrantId) -> Result<Uuid, StoreError> {
    grant.0.parse().map_err(|_| StoreError::Mismatch("a grant id that is no UUID".to_owned()))
}

/// A generation as it is stored.
pub(super) fn generation(generation: u64) -> i64 {
    i64::try_from(generation).unwrap_or(i64::MAX)
}

fn digest(bytes: &[u8]) -> Result<[u8; 32], StoreError> {
    bytes.try_into().map_err(|_| strange())
}

fn strange() -> StoreError {
    StoreError::Mismatch("a row of `mcp_oauth_chain` is none of this version's".to_owned())
}
