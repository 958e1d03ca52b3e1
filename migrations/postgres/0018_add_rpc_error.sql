-- The JSON-RPC error that the call of a task ended with, so that its outcome is told as its server told it.
ALTER TABLE mcp_task ADD COLUMN rpc_error text;                  -- code, message, data; null = it ended otherwise
