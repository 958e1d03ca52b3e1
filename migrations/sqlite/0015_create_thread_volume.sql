-- Which volume the files of a thread are on, where replicas do not share one.
CREATE TABLE mcp_thread_volume (
    user_id   text NOT NULL,
    thread_id text NOT NULL,
    volume    blob NOT NULL,
    PRIMARY KEY (user_id, thread_id)
) STRICT, WITHOUT ROWID;
ALTER TABLE replica ADD COLUMN volume blob;                -- the one it has; null = all share one
