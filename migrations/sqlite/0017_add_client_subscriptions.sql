-- What the session of a client is subscribed to: whichever replica holds its stream watches that. URIs with a
-- line end before and behind each; a session without any holds nothing.
ALTER TABLE mcp_client_session ADD COLUMN subscriptions text NOT NULL DEFAULT '';
