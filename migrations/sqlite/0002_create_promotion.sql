-- The tools promoted in one thread of one user, and the catalogue they were promoted under (contract 9.3).
CREATE TABLE mcp_promotion (
    user_id      text NOT NULL,
    thread_id    text NOT NULL,
    catalog_hash text NOT NULL,
    names        text NOT NULL,                                  -- JSON array, in the order of promotion
    PRIMARY KEY (user_id, thread_id)
) STRICT, WITHOUT ROWID;
