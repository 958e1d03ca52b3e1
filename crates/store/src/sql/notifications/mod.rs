//! The outbox in a database (durability.md 1.9). What becomes of a row is core's to decide: the row is locked, read, and
//! written whole, in one transaction.

mod claim;
mod look;
mod port;
mod rows;
mod settle;

pub(in crate::sql) use rows::{DeliveryRow, delivery, number};
pub(in crate::sql) use settle::{HOLD, RENEW, bound, renew_delivery, undecodable};
