//! The three drivers against an upstream that says what was written down: what each answer means (contract 6.7), and
//! what is asked of the server.

mod answers;
mod asked;
mod rows;
mod table;
mod upstream;
