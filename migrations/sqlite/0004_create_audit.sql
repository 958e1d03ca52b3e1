-- One row for each call and each change by a caller. Never arguments, results, headers or secrets.
-- Times are milliseconds of the Unix epoch.
CREATE TABLE mcp_audit (
    id          integer PRIMARY KEY AUTOINCREMENT NOT NULL,
    at          integer NOT NULL                                  -- when it was stored: decides retention
                DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS integer)),
    at_ms       integer NOT NULL,                                 -- when it ended, by the replica's clock: for people
    principal   text    NOT NULL,
    user_id     text    NOT NULL,
    thread_id   text    NOT NULL,
    action      text    NOT NULL,
    server      text    NOT NULL,
    tool        text    NOT NULL,
    outcome     text    NOT NULL,
    duration_ms integer NOT NULL,
    request_id  text    NOT NULL,
    door        text    NOT NULL
) STRICT;
CREATE INDEX mcp_audit_at ON mcp_audit (at);
CREATE INDEX mcp_audit_user ON mcp_audit (user_id, id);
CREATE INDEX mcp_audit_principal ON mcp_audit (principal, id);
