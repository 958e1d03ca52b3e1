-- The generations that everything is opened under (durability.md, generations), which replica goes by which, and the
-- document of servers where it is kept here.
CREATE TABLE reset_generation (
    scope    text        PRIMARY KEY,                             -- document, global, server:<name>
    origin   uuid        NOT NULL,                                -- where the count began; never drawn twice
    counter  bigint      NOT NULL,
    moved_at timestamptz NOT NULL
) WITH (fillfactor = 80);
CREATE TABLE replica_generation (
    boot_id uuid   NOT NULL,
    scope   text   NOT NULL,
    origin  uuid   NOT NULL,
    counter bigint NOT NULL,
    PRIMARY KEY (boot_id, scope)
) WITH (fillfactor = 80);
CREATE TABLE mcp_config_revision (
    revision bigint      PRIMARY KEY,                             -- counts up from 1
    author   text        NOT NULL,
    at       timestamptz NOT NULL,
    document bytea       NOT NULL                                 -- byte for byte
);
