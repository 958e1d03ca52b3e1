//! One folder a resource, one file a verb.

pub(crate) mod audit;
pub(crate) mod cache;
pub(crate) mod config;
pub(crate) mod connections;
pub(crate) mod features;
pub(crate) mod health;
pub(crate) mod me;
pub(crate) mod metrics;
pub(crate) mod oauth;
pub(crate) mod openapi;
pub(crate) mod prompt_section;
pub(crate) mod replicas;
pub(crate) mod servers;
pub(crate) mod sessions;
pub(crate) mod tasks;
pub(crate) mod threads;
pub(crate) mod tools;
