//! What tools are called, which of them are shown (contract 5.2), and how models are led to the right one (contract 9).

mod catalog;
mod deferral;
mod name;
mod promotion;
mod repair;
mod routing;
mod search;
mod section;

pub use catalog::{ByName, CatalogTool, ServerTools, merge};
pub use deferral::Deferral;
pub use name::{could_belong_to, visible_name};
pub use promotion::{AUTO_PROMOTE_TOP_K, Promotion, auto_promote_top_k, matching};
pub use routing::{Hint, hints, hints_section};
pub use search::search;
