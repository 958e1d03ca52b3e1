-- What the next owner of a session goes on with: the session that a remote server keeps for whoever knows its id.
ALTER TABLE mcp_session ADD COLUMN resumption_ct blob;           -- sealed, under the epoch of its row; null = nothing
