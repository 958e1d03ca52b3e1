-- Servers that users bring for themselves. The definition is encrypted: its address and headers may be secret.
CREATE TABLE mcp_connection (
    user_id      text    NOT NULL,
    name         text    NOT NULL,
    runtime_name text    NOT NULL,
    sealed       blob    NOT NULL,
    enabled      integer NOT NULL,
    PRIMARY KEY (user_id, name)
) STRICT, WITHOUT ROWID;
-- A number for each user that grows with every change of theirs, the last deletion too.
CREATE TABLE mcp_connection_revision (
    user_id  text    PRIMARY KEY NOT NULL,
    revision integer NOT NULL
) STRICT, WITHOUT ROWID;
