-- Where a replica is reached, how much it has to do, and what proves to others of its machine that it is gone.
ALTER TABLE replica ADD COLUMN address   text;                       -- host:port; null = the others do not reach it
ALTER TABLE replica ADD COLUMN host_id   text;                       -- names its machine; null = nobody may prove its end
ALTER TABLE replica ADD COLUMN lock_path text;                       -- a file there, locked while anything of it is left
ALTER TABLE replica ADD COLUMN load      real NOT NULL DEFAULT 0;    -- the part of its sessions that is in use, 0 to 1
