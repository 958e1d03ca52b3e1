-- One row for each call and each change by a caller. Never arguments, results, headers or secrets.
CREATE TABLE mcp_audit (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),   -- when it was stored: decides retention
    at_ms       bigint      NOT NULL,                             -- when it ended, by the replica's clock: for people
    principal   text        NOT NULL,
    user_id     text        NOT NULL,
    thread_id   text        NOT NULL,
    action      text        NOT NULL,
    server      text        NOT NULL,
    tool        text        NOT NULL,
    outcome     text        NOT NULL,
    duration_ms bigint      NOT NULL,
    request_id  text        NOT NULL,
    door        text        NOT NULL
);
CREATE INDEX mcp_audit_at ON mcp_audit (at);
CREATE INDEX mcp_audit_user ON mcp_audit (user_id, id);
CREATE INDEX mcp_audit_principal ON mcp_audit (principal, id);
