-- The keys callers present, by a keyed hash of each. A revoked one stays, so that its id is never used again.
CREATE TABLE mcp_api_key (
    id         text        PRIMARY KEY,
    hash       bytea       NOT NULL UNIQUE,
    label      text        NOT NULL,
    user_id    text        NOT NULL,
    roles      text        NOT NULL,                              -- JSON array of words
    allowed    text,                                              -- JSON array of patterns; null = every tool
    denied     text        NOT NULL,                              -- JSON array of patterns
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    revoked_at timestamptz
);
