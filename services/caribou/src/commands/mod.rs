//! The command line: one file per command, and what they share.
//!
//! Owns arguments, tables and exit codes (0 done, 1 failed, 2 wrong usage). What a command asks for is asked over
//! REST, of a running replica or of one that lives inside this process for the length of the command, so both show
//! the same. Results go to stdout, everything else to stderr.

mod arguments;
mod audit;
mod check;
mod cluster;
mod config;
mod demo;
mod doctor;
mod gateway;
mod keys;
mod migrate;
mod oauth;
mod output;
mod replicas;
mod run;
mod serve;
mod servers;
mod sessions;
mod start_screen;
mod stdio;
mod tasks;
mod tools;
mod usage;

pub(crate) use run::run;
