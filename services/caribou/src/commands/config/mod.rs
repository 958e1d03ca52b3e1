//! `caribou config`: what can be configured.

pub(super) mod schema;
