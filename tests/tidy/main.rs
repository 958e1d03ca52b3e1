//! The tree's own rules, as tests.
//!
//! Each rule is a function from a tree to the list of its breaches, and stands beside two tests: the real tree has
//! none, a small bad tree has those one expects. A rule that never bites would be worse than none.

mod dependencies;
mod faults;
mod invariants;
mod layout;
mod migrations;
mod names;
mod openings;
mod sizes;
mod tree;
mod waits;
mod words;
