-- The keys callers present, by a keyed hash of each. A revoked one stays, so that its id is never used again.
-- Times are milliseconds of the Unix epoch.
CREATE TABLE mcp_api_key (
    id         text    PRIMARY KEY NOT NULL,
    hash       blob    NOT NULL UNIQUE,
    label      text    NOT NULL,
    user_id    text    NOT NULL,
    roles      text    NOT NULL,                                  -- JSON array of words
    allowed    text,                                              -- JSON array of patterns; null = every tool
    denied     text    NOT NULL,                                  -- JSON array of patterns
    created_at integer NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS integer)),
    expires_at integer,
    revoked_at integer
) STRICT, WITHOUT ROWID;
