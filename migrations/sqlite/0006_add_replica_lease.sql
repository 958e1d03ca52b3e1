-- The one lease of each life of a replica. One without a renewal has none.
ALTER TABLE replica ADD COLUMN renewals       integer NOT NULL DEFAULT 0;    -- peers watch it move
ALTER TABLE replica ADD COLUMN lease_until    integer NOT NULL DEFAULT 0;
ALTER TABLE replica ADD COLUMN configurations text    NOT NULL DEFAULT '';   -- of task servers: numbers with commas between
