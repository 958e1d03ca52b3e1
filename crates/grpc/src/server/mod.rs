//! The services of the listener: tools, tasks, administration, health, reflection.

mod admin;
mod event_stream;
mod follow;
mod health;
mod named;
mod reflection;
mod routes;
mod tasks;
mod tools;
mod watching;

pub(crate) use routes::{is_conversation, routes};
