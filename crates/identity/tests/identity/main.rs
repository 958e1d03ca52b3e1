//! Tokens of an issuer that this process plays, judged as those of a real one.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

mod issuer;
mod rotation;
mod tokens;
