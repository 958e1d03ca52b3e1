//! The services of the listener: tools, health, reflection.

mod event_stream;
mod health;
mod reflection;
mod routes;
mod tools;

pub(crate) use routes::routes;
