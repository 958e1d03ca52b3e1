//! `caribou keys`: API keys of callers, and the keys that encrypt what is stored. The former are made and revoked in the database itself, so that the first admin needs
//! no other, and nobody who merely reaches a replica can make one.

pub(super) mod create;
pub(super) mod generate;
pub(super) mod list;
pub(super) mod revoke;
pub(super) mod rotate;

mod record;
