//! Tools of all servers: list, search and promote them, call one, ask the servers for them again.

pub(crate) mod call;
mod carrier;
pub(crate) mod list;
pub(crate) mod promote;
pub(crate) mod refresh;
pub(crate) mod search;

pub(crate) use call::CallAnswer;
