//! The public verbs, one a file.

pub(crate) mod answer_task;
pub(crate) mod background_tasks;
pub(crate) mod call_tool;
pub(crate) mod cancel_task;
pub(crate) mod change_config;
pub(crate) mod close_sessions;
mod config_history;
pub(crate) mod drain;
pub(crate) mod follow_task;
pub(crate) mod from_peer;
pub(crate) mod list_tools;
pub(crate) mod oauth_chains;
pub(crate) mod one_server;
pub(crate) mod pass_request;
pub(crate) mod personal_connections;
pub(crate) mod promote_tools;
pub(crate) mod prompt_section;
pub(crate) mod read_audit;
pub(crate) mod read_tasks;
pub(crate) mod replicas;
pub(crate) mod reset;
pub(crate) mod seal;
pub(crate) mod search_tools;
pub(crate) mod status;
pub(crate) mod submit_task;
pub(crate) mod watch_tasks;
