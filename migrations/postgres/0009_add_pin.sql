-- Where a task is worked on that lives in a session of one replica, so that no other one claims it (architecture.md §10).
ALTER TABLE mcp_work ADD COLUMN pinned_to uuid;                    -- boot id
CREATE INDEX mcp_work_pinned ON mcp_work (pinned_to) WHERE pinned_to IS NOT NULL;
