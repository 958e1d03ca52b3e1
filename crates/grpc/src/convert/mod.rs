//! Between the messages of `proto/caribou/v1` and the runtime's own structures. No rule stands here.

mod call;
mod tools;

pub(crate) use call::{called, into_call, reported};
pub(crate) use tools::{found, listed};
