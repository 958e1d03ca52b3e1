-- One row for each life of a replica, never used again: what a dead one held is found by its boot id.
CREATE TABLE replica (
    boot_id    uuid        PRIMARY KEY,
    host       text        NOT NULL,                             -- for people; two replicas may share it
    version    text        NOT NULL,
    state      smallint    NOT NULL DEFAULT 1,                   -- 1 up, 2 draining, 3 dead
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    dead_at    timestamptz,
    CONSTRAINT replica_state CHECK (state BETWEEN 1 AND 3),
    CONSTRAINT replica_dead_at CHECK ((state = 3) = (dead_at IS NOT NULL))
);
