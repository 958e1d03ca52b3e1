//! The chart and the images: rendered by a real helm, checked against the schemas of Kubernetes, and against the code
//! they belong to.
//!
//! No cluster takes part. What only a cluster shows (that pods come up, that a policy is enforced) is not proved here.

#![expect(clippy::unwrap_used, reason = "an unwrap that fails fails its test")]

mod chart;
mod documents;
mod image;
mod metrics;
mod network;
mod pods;
mod refusals;
mod secrets;
mod settings;
mod started;
