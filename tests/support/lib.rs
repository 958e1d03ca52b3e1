//! What the tests of Caribou are written with: the product as a process, scriptable servers, and waiting.
//!
//! Owns nothing of the product and repeats none of its rules: a fake here speaks MCP by its own code, so that one
//! misreading cannot hide on both sides. A helper that cannot do its work panics with what is missing and how to get
//! it; it never skips.

pub mod answer;
pub mod cable;
pub mod caribou;
pub mod certificates;
pub mod collector;
pub mod counter_server;
pub mod event_receiver;
pub mod eventually;
pub mod fake;
pub mod home;
pub mod identity_provider;
pub mod network;
pub mod postgres;
pub mod process;
pub mod redis;
pub mod round_robin;
pub mod seeded;
pub mod servers;
pub mod skewed_clock;
pub mod task_server;
pub mod third_party;

pub use answer::Answer;
pub use cable::Cable;
pub use caribou::{Caribou, Setup, know_one_another};
pub use certificates::{Authority, Certificate};
pub use collector::Collector;
pub use event_receiver::EventReceiver;
pub use eventually::eventually;
pub use fake::{HttpFake, Script, StdioFake, TokenFake};
pub use home::Home;
pub use postgres::Postgres;
pub use redis::Redis;
pub use round_robin::RoundRobin;
pub use skewed_clock::SkewedClock;
pub use task_server::TaskServer;
