//! MCP over the pipes of a child process (mcp.md §3.5).
//!
//! `launch` starts the child, `writer` and `reader` speak over its pipes, `stderr` keeps what it complains about,
//! `life` notices its end and sees to it that nothing is left of it, `channel` ties them together, `open` brings one
//! up. One session owns one child; every process of the child's group is gone before a close resolves.

mod channel;
mod launch;
mod life;
mod open;
mod reader;
mod stderr;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use launch::Launcher;
pub(crate) use open::open;
