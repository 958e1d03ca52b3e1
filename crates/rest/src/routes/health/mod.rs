//! What an orchestrator asks: is it alive, does it take work.

pub(crate) mod live;
pub(crate) mod ready;
