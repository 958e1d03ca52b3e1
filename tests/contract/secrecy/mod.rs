//! No secret is shown, wherever it was configured, sent or answered, in whatever spelling (invariant O3).
//!
//! Every place in which a secret can stand holds a text of its own. Servers, token endpoints and interceptors then
//! repeat what they were given, plainly and encoded, in every error they can give; callers fail in every way; and all
//! that leaves Caribou but the results themselves is searched: answers, logs, metrics, spans, records, files, commands.
//! Each test also proves that the secrets were really in use.

mod callers;
mod collector;
mod servers;
mod shown;
