//! Between the messages of `proto/caribou/v1` and the runtime's own structures. No rule stands here.

mod admin;
mod call;
mod tasks;
mod tools;
mod watch;

pub(crate) use admin::{config, replica, reset, server, session, written};
pub(crate) use call::{called, into_call, reported};
pub(crate) use tasks::{anybodys, change, detailed, submitted, submitting, task};
pub(crate) use tools::{found, listed};
pub(crate) use watch::{acknowledged, watched};
