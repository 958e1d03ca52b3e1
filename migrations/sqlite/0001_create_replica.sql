-- One row for each life of a replica, never used again: what a dead one held is found by its boot id.
-- Times are milliseconds of the Unix epoch.
CREATE TABLE replica (
    boot_id    blob    PRIMARY KEY NOT NULL,
    host       text    NOT NULL,                                 -- for people; two replicas may share it
    version    text    NOT NULL,
    state      integer NOT NULL DEFAULT 1,                       -- 1 up, 2 draining, 3 dead
    started_at integer NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS integer)),
    dead_at    integer,
    CONSTRAINT replica_state CHECK (state BETWEEN 1 AND 3),
    CONSTRAINT replica_dead_at CHECK ((state = 3) = (dead_at IS NOT NULL))
) STRICT;
