//! What tools are called and which of them are shown (contract 5.2).

mod catalog;
mod name;
mod repair;

pub use catalog::{ByName, CatalogTool, ServerTools, merge};
pub use name::{could_belong_to, visible_names};
