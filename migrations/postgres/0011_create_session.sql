-- Which replica holds which session. A row stays when nobody does, so that its epoch only grows.
CREATE TABLE mcp_session (
    session    bytea       PRIMARY KEY,                           -- a hash of server, user, thread and credential
    server     text        NOT NULL,                              -- these three are for people
    user_id    text        NOT NULL,
    thread_id  text        NOT NULL,
    owner      uuid,                                              -- boot id; null = nobody
    epoch      bigint      NOT NULL,                              -- counts the owners
    told_epoch bigint      NOT NULL DEFAULT 0,                    -- the last one that the thread was answered at
    taken_at   timestamptz NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX mcp_session_owner ON mcp_session (owner, taken_at) WHERE owner IS NOT NULL;
