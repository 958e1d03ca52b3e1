-- The generations that everything is opened under (durability.md, generations), which replica goes by which, and the
-- document of servers where it is kept here. Times are milliseconds of the Unix epoch.
CREATE TABLE reset_generation (
    scope    text    PRIMARY KEY NOT NULL,                        -- document, global, server:<name>
    origin   blob    NOT NULL,                                    -- where the count began; never drawn twice
    counter  integer NOT NULL,
    moved_at integer NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE replica_generation (
    boot_id blob    NOT NULL,
    scope   text    NOT NULL,
    origin  blob    NOT NULL,
    counter integer NOT NULL,
    PRIMARY KEY (boot_id, scope)
) STRICT, WITHOUT ROWID;
CREATE TABLE mcp_config_revision (
    revision integer PRIMARY KEY NOT NULL,                        -- counts up from 1
    author   text    NOT NULL,
    at       integer NOT NULL,
    document blob    NOT NULL                                     -- byte for byte
) STRICT;
