-- What is still to be told of a task, and to whom; a row goes when all is told (contract 6.9, durability.md 1.9).
-- Times are milliseconds of the Unix epoch.
CREATE TABLE mcp_delivery (
    task_id     blob    NOT NULL REFERENCES mcp_task ON DELETE CASCADE,
    sink        integer NOT NULL,                                 -- 1 webhook, 2 stream, 3 log
    due_at      integer,                                          -- null: given up
    claim_seq   integer NOT NULL DEFAULT 0,
    claim_owner blob,                                             -- boot id
    phase       integer NOT NULL,                                 -- 0 pending, 1 launching, 2 launched, 3 retry,
                                                                  -- 4 dead letter
    newest      integer NOT NULL,                                 -- the newest event to tell
    launched    integer,                                          -- the event of the last launch: part of its key
    attempt     integer NOT NULL,                                 -- likewise; moves after a failed run only
    failures    integer NOT NULL,
    unclear     integer NOT NULL,
    run_id      text,
    error       text,
    PRIMARY KEY (task_id, sink),
    CONSTRAINT mcp_delivery_dead CHECK ((due_at IS NULL) = (phase = 4))
) STRICT, WITHOUT ROWID;
CREATE INDEX mcp_delivery_due ON mcp_delivery (sink, due_at);
