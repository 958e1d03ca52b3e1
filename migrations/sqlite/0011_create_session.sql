-- Which replica holds which session. A row stays when nobody does, so that its epoch only grows.
CREATE TABLE mcp_session (
    session    blob    PRIMARY KEY NOT NULL,                       -- a hash of server, user, thread and credential
    server     text    NOT NULL,                                   -- these three are for people
    user_id    text    NOT NULL,
    thread_id  text    NOT NULL,
    owner      blob,                                               -- boot id; null = nobody
    epoch      integer NOT NULL,                                   -- counts the owners
    told_epoch integer NOT NULL DEFAULT 0,                         -- the last one that the thread was answered at
    taken_at   integer NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mcp_session_owner ON mcp_session (owner, taken_at) WHERE owner IS NOT NULL;
