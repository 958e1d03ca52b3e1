-- The one lease of each life of a replica. One without a renewal has none.
ALTER TABLE replica
    ADD COLUMN renewals       bigint      NOT NULL DEFAULT 0,       -- peers watch it move
    ADD COLUMN lease_until    timestamptz NOT NULL DEFAULT 'epoch',
    ADD COLUMN configurations text        NOT NULL DEFAULT '';      -- of task servers: numbers with commas between
