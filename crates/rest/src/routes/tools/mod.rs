//! Tools of all servers: list them, call one, ask the servers for them again.

pub(crate) mod call;
pub(crate) mod list;
pub(crate) mod refresh;

pub(crate) use call::CallAnswer;
