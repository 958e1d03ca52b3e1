-- Sessions that clients opened with us, so that every replica serves them.
CREATE TABLE mcp_client_session (
    id           text    PRIMARY KEY NOT NULL,
    principal    text    NOT NULL,                                 -- who may use it
    server       text,                                             -- null = opened with all servers
    version      text    NOT NULL,                                 -- the revision of the protocol
    capabilities text    NOT NULL,                                 -- of the client, as it wrote them
    log_level    text,                                             -- null = it did not say
    used_at      integer NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mcp_client_session_used ON mcp_client_session (used_at);
