//! The statements. None reads what it writes in another request: each is a comparison and a change in one commit.

use crate::sql::statement::{Statement, statement};

macro_rules! chains {
    ($rest:literal) => {
        statement!(
            "SELECT grant_id, connection, seed_fp, generation, state, rotated, refresh_ct, access_ct, access_kind,
             " (MS_UNTIL "access_until") ", " (MS_UNTIL "refresh_ahead") ", lease_seq, lease_owner,
             " (MS_UNTIL "lease_until") ",
             EXISTS (SELECT 1 FROM replica AS life WHERE life.boot_id = lease_owner AND life.state = 3),
             " (MS_SINCE inflight_at) ", presented, failures, last_error, " (MS_UNTIL "retry_at") ",
             " (US "changed_at") "
             FROM mcp_oauth_chain " $rest
        )
    };
}

pub(super) const LOAD: Statement = chains!("WHERE connection = $1");

pub(super) const LIST: Statement = chains!("ORDER BY connection");

/// Of two that start it, one does.
pub(super) const START: Statement = statement!(
    "INSERT INTO mcp_oauth_chain (grant_id, connection, seed_fp, changed_at) VALUES ($1, $2, $3, " NOW ")
     ON CONFLICT (connection) DO NOTHING"
);

/// The conditions keep a chain that moved, and one whose token is on its way: the new start may present the same one.
pub(super) const START_OVER: Statement = statement!(
    "UPDATE mcp_oauth_chain
     SET seed_fp = $4, generation = generation + 1, state = 0, rotated = false, refresh_ct = NULL, access_ct = NULL,
         access_kind = NULL, access_until = NULL, refresh_ahead = NULL, lease_owner = NULL, lease_until = NULL,
         inflight_at = NULL, presented = 0, failures = 0, last_error = NULL, retry_at = NULL, changed_at = " NOW "
     WHERE grant_id = $1 AND generation = $2 AND lease_seq = $3 AND (lease_until IS NULL OR lease_until < " NOW ")"
);

/// The conditions let one of those who saw the same begin, after every earlier lease (invariant O1).
pub(super) const BEGIN: Statement = statement!(
    "UPDATE mcp_oauth_chain
     SET state = 1, lease_owner = $4, lease_seq = lease_seq + 1, lease_until = " (MS_LATER 5) ",
         inflight_at = " NOW ", presented = presented + 1, changed_at = " NOW "
     WHERE grant_id = $1 AND generation = $2 AND lease_seq = $3 AND state < 3
       AND (lease_until IS NULL OR lease_until < " NOW ")"
);

/// The conditions name the presentation; one that is settled has no lease.
pub(super) const RENEW: Statement = statement!(
    "UPDATE mcp_oauth_chain SET lease_until = " (MS_LATER 5) "
     WHERE grant_id = $1 AND generation = $2 AND lease_seq = $3 AND lease_owner = $4 AND state = 1"
);

/// The generation is the only fence, and no lease one: a successor that was received is stored whatever happened to its
/// presentation meanwhile (invariant O2, the exception of C1).
pub(super) const FINISH: Statement = statement!(
    "UPDATE mcp_oauth_chain
     SET generation = generation + 1, state = 0, rotated = (rotated OR $3), refresh_ct = $4, access_ct = $5,
         access_kind = $6, access_until = " (MS_LATER 7) ", refresh_ahead = " (MS_LATER 8) ", lease_owner = NULL,
         lease_until = NULL, inflight_at = NULL, presented = 0, failures = 0, last_error = NULL, retry_at = NULL,
         changed_at = " NOW "
     WHERE grant_id = $1 AND generation = $2"
);

/// The conditions name the presentation: whoever lost the chain changes nothing (R5). A presentation of known outcome
/// is none that may have spent the token.
pub(super) const SETTLE: Statement = statement!(
    "UPDATE mcp_oauth_chain
     SET state = $5, lease_until = NULL, lease_owner = CASE WHEN $5 = 2 THEN lease_owner ELSE NULL END,
         presented = CASE WHEN $5 = 2 OR presented = 0 THEN presented ELSE presented - 1 END,
         failures = failures + 1, last_error = $6, retry_at = " (MS_LATER 7) ", changed_at = " NOW "
     WHERE grant_id = $1 AND generation = $2 AND lease_seq = $3 AND lease_owner = $4 AND state = 1"
);

/// The conditions keep a chain that moved, and one that somebody is at.
pub(super) const GIVE_UP: Statement = statement!(
    "UPDATE mcp_oauth_chain
     SET state = $4, lease_until = NULL, last_error = $5, retry_at = " (MS_LATER 6) ", changed_at = " NOW "
     WHERE grant_id = $1 AND generation = $2 AND lease_seq = $3 AND state IN (1, 2)
       AND (lease_until IS NULL OR lease_until < " NOW ")"
);

pub(super) const FORGET: Statement = statement!("DELETE FROM mcp_oauth_chain WHERE grant_id = $1");

/// Only over exactly what was opened: a token that came meanwhile is never replaced by an older one.
pub(super) const RESEAL: Statement = statement!(
    "UPDATE mcp_oauth_chain SET refresh_ct = $3, access_ct = $4
     WHERE grant_id = $1 AND generation = $2 AND refresh_ct IS NOT DISTINCT FROM $5
       AND access_ct IS NOT DISTINCT FROM $6"
);
