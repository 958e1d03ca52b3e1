//! What stands on the wire: JSON-RPC envelopes over raw JSON, ids, lines, event streams, headers.

pub(crate) mod envelope;
pub(crate) mod errors;
pub(crate) mod excerpt;
pub(crate) mod headers;
pub(crate) mod ids;
pub(crate) mod limits;
pub(crate) mod line;
pub(crate) mod meta;
pub(crate) mod params;
pub(crate) mod progress;
pub(crate) mod result_type;
pub(crate) mod sse;
pub(crate) mod versions;
