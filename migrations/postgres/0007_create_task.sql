-- Durable tasks (contract 6.3, durability.md 1.4): what is rarely written is apart from what is claimed all the time.
-- Payloads are text, as they came: jsonb would sort members and refuse \u0000.
CREATE TABLE mcp_task (
    task_id           uuid        PRIMARY KEY,
    submit_key        uuid        NOT NULL UNIQUE,                -- one intent, one task
    user_id           text        NOT NULL,
    thread_id         text        NOT NULL,
    server            text        NOT NULL,
    driver            text        NOT NULL,
    task_name         text        NOT NULL,
    configuration     bigint      NOT NULL,                       -- of the server: which replicas follow the task
    is_pinned         boolean     NOT NULL,
    run_id            text,
    tool_call_id      text,
    remote_id         text,                                       -- null: nobody knows whether there is one
    driver_data       text        NOT NULL DEFAULT '{}',
    session_id        text,
    status            smallint    NOT NULL,                       -- 0 intended, 1 submitted, 2 working, 3 input required,
                                                                  -- 10 completed, 11 failed, 12 cancelled, 13 unknown
    ver               bigint      NOT NULL DEFAULT 0,             -- changes recorded: the number of the newest event
    result            text,
    preview           text,
    is_truncated      boolean     NOT NULL DEFAULT false,
    artifact_uri      text,
    artifact_mime     text,
    error             text,
    input_required    text,
    fingerprint       bytea,                                      -- of the last event that asked for attention
    waiting_answers   integer     NOT NULL DEFAULT 0,
    cancel_at         timestamptz,
    last_polled_at    timestamptz,                                -- of an ended task; else in mcp_work
    cancel_attempts   integer     NOT NULL DEFAULT 0,             -- likewise
    last_poll_error   text,
    last_cancel_error text,
    last_answer_error text,
    ended_at          timestamptz,
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT mcp_task_status CHECK (status BETWEEN 0 AND 3 OR status BETWEEN 10 AND 13),
    CONSTRAINT mcp_task_ended CHECK ((ended_at IS NOT NULL) = (status >= 10)),
    CONSTRAINT mcp_task_handle CHECK (remote_id IS NOT NULL OR status IN (0, 13))
);
-- Two tasks never follow one remote task of one user.
CREATE UNIQUE INDEX mcp_task_remote ON mcp_task (user_id, server, remote_id) WHERE remote_id IS NOT NULL;
CREATE INDEX mcp_task_thread ON mcp_task (user_id, thread_id, created_at, task_id);
CREATE INDEX mcp_task_user ON mcp_task (user_id, created_at, task_id);
CREATE INDEX mcp_task_created ON mcp_task (created_at, task_id);
CREATE INDEX mcp_task_active ON mcp_task (user_id) WHERE ended_at IS NULL;
CREATE INDEX mcp_task_ended_at ON mcp_task (ended_at) WHERE ended_at IS NOT NULL;

-- One row for each task that has not ended. due_at says when anybody may touch it: while claimed, the end of the claim.
CREATE TABLE mcp_work (
    task_id        uuid        PRIMARY KEY,
    lane           smallint    NOT NULL,                          -- duty x 256 + shard
    due_at         timestamptz NOT NULL,
    claim_seq      bigint      NOT NULL DEFAULT 0,                -- only grows
    claim_owner    uuid,                                          -- boot id
    abandons       smallint    NOT NULL DEFAULT 0,                -- claims in a row that ended in nothing
    poll_errors    integer     NOT NULL DEFAULT 0,                -- in a row
    attempts       integer     NOT NULL DEFAULT 0,                -- of a duty other than polling
    last_polled_at timestamptz,
    configuration  bigint      NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX mcp_work_due ON mcp_work (lane, due_at);

-- Every change of a task, for ever the same. At most one is terminal.
CREATE TABLE mcp_event (
    task_id uuid        NOT NULL REFERENCES mcp_task ON DELETE CASCADE,
    seq     bigint      NOT NULL,
    status  smallint    NOT NULL,
    body    text        NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    told_at timestamptz,                                          -- delivered: the only thing that is ever added
    PRIMARY KEY (task_id, seq)
);
CREATE UNIQUE INDEX mcp_event_terminal ON mcp_event (task_id) WHERE status >= 10;

-- Answers to what tasks ask.
CREATE TABLE mcp_task_input (
    task_id  uuid        NOT NULL REFERENCES mcp_task ON DELETE CASCADE,
    input_id text        NOT NULL,
    seq      integer     NOT NULL,                                -- the order in which they were given
    body     text        NOT NULL,
    state    smallint    NOT NULL DEFAULT 0,                      -- 0 waits, 1 the remote has it, 2 it refused it
    error    text,
    PRIMARY KEY (task_id, input_id)
);
