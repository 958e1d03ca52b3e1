//! How callers prove who they are: API keys and JSON Web Tokens.
