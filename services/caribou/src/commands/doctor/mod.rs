//! `caribou doctor`: looks at everything a replica needs before one is started, or while one will not start, and says
//! of each thing how it is and what to do next. One file for each check.
//!
//! Owns what is looked at and how it is told. What is wrong with settings and with the servers' document is said by
//! their readers, what would end a start by the start gate, how a server is by the runtime: they are asked here, not
//! repeated. Changes nothing: no database or key is made, no refresh token is presented, no tool is called. Every check
//! has a deadline, and none prints a secret (invariants B1, O3).

mod addresses;
mod clock;
mod credentials;
mod database;
mod document;
mod examine;
mod files;
mod finding;
mod ground;
mod limits;
mod peers;
mod programs;
mod redis;
mod run;
mod servers;
mod settings;
mod show;

pub(super) use run::{Arguments, run};
