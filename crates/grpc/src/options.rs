//! The settings of the gRPC side, with their defaults.

use std::sync::Arc;
use std::time::Duration;

/// Tells whether new work is welcome. Must not block.
pub type Readiness = Arc<dyn Fn() -> bool + Send + Sync>;

/// What the services beside the verbs answer with, and how long a request may take to arrive.
#[derive(Clone)]
pub struct GrpcOptions {
    /// What `grpc.health.v1` answers.
    pub ready: Readiness,
    /// How long a caller may take to send one message.
    pub message_timeout: Duration,
}

impl Default for GrpcOptions {
    /// Always ready.
    fn default() -> Self {
        Self { ready: Arc::new(|| true), message_timeout: Duration::from_secs(30) }
    }
}
