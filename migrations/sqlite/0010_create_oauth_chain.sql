-- Chains of rotating refresh tokens, one for each connection (contract 7.5, durability.md 3.2).
-- Times are milliseconds of the Unix epoch.
CREATE TABLE mcp_oauth_chain (
    grant_id      blob    PRIMARY KEY,                            -- one life of the row; never used again
    connection    text    NOT NULL UNIQUE,                        -- a server's name, or a personal connection's runtime name
    seed_fp       blob    NOT NULL,                               -- sha256 of what the chain was started from
    generation    integer NOT NULL DEFAULT 0,                     -- only grows
    state         integer NOT NULL DEFAULT 0,                     -- 0 idle, 1 in flight, 2 unknown, 3 reauth needed
    rotated       integer NOT NULL DEFAULT false,                 -- whether a successor ever came
    refresh_ct    blob,                                           -- sealed; null: the configured token comes first
    access_ct     blob,                                           -- sealed
    access_kind   blob,                                           -- sha256 of how the access token was asked for
    access_until  integer,
    refresh_ahead integer,
    lease_owner   blob,                                           -- boot id of whoever presented last
    lease_seq     integer NOT NULL DEFAULT 0,                     -- counts presentations
    lease_until   integer,
    inflight_at   integer,                                        -- when the last presentation began
    presented     integer NOT NULL DEFAULT 0,                     -- presentations of this generation of unknown outcome
    failures      integer NOT NULL DEFAULT 0,                     -- in a row
    last_error    text,
    retry_at      integer,
    changed_at    integer NOT NULL,
    CONSTRAINT mcp_oauth_chain_state CHECK (state BETWEEN 0 AND 3),
    CONSTRAINT mcp_oauth_chain_intent CHECK (state <> 1 OR (inflight_at IS NOT NULL AND lease_owner IS NOT NULL))
) STRICT, WITHOUT ROWID;
