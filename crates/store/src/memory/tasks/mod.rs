//! Durable tasks in memory: the same answers as a database gives, by a clock that tests may pause.
//!
//! Everything is done under one lock, so each method is one commit. What is refused has changed nothing.

mod book;
mod claim;
mod port;
mod settle;

pub(super) use book::{Book, OnItsWay};
