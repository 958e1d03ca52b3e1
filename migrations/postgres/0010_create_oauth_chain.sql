-- Chains of rotating refresh tokens, one for each connection (contract 7.5, durability.md 3.2).
CREATE TABLE mcp_oauth_chain (
    grant_id      uuid        PRIMARY KEY,                        -- one life of the row; never used again
    connection    text        NOT NULL UNIQUE,                    -- a server's name, or a personal connection's runtime name
    seed_fp       bytea       NOT NULL,                           -- sha256 of what the chain was started from
    generation    bigint      NOT NULL DEFAULT 0,                 -- only grows
    state         smallint    NOT NULL DEFAULT 0,                 -- 0 idle, 1 in flight, 2 unknown, 3 reauth needed
    rotated       boolean     NOT NULL DEFAULT false,             -- whether a successor ever came
    refresh_ct    bytea,                                          -- sealed; null: the configured token comes first
    access_ct     bytea,                                          -- sealed
    access_kind   bytea,                                          -- sha256 of how the access token was asked for
    access_until  timestamptz,
    refresh_ahead timestamptz,
    lease_owner   uuid,                                           -- boot id of whoever presented last
    lease_seq     bigint      NOT NULL DEFAULT 0,                 -- counts presentations
    lease_until   timestamptz,
    inflight_at   timestamptz,                                    -- when the last presentation began
    presented     integer     NOT NULL DEFAULT 0,                 -- presentations of this generation of unknown outcome
    failures      integer     NOT NULL DEFAULT 0,                 -- in a row
    last_error    text,
    retry_at      timestamptz,
    changed_at    timestamptz NOT NULL,
    CONSTRAINT mcp_oauth_chain_state CHECK (state BETWEEN 0 AND 3),
    CONSTRAINT mcp_oauth_chain_intent CHECK (state <> 1 OR (inflight_at IS NOT NULL AND lease_owner IS NOT NULL))
) WITH (fillfactor = 80);
