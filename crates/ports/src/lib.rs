//! What Caribou needs from outside, one trait a need, each with its error.
//!
//! The runtime calls these; adapters implement them; neither knows the other. No implementation, no HTTP type and
//! no SQL stands here.

use std::future::Future;
use std::pin::Pin;

pub mod access_token;
pub mod config_source;
pub mod event_sink;
pub mod guard;
pub mod identity;
pub mod interceptor;
pub mod machine;
pub mod mcp;
pub mod peers;
pub mod reset_signal;
pub mod store;
pub mod task_driver;
pub mod token_endpoint;
pub mod vault;
pub mod workspace;

/// A boxed future, so that ports can be used behind `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
