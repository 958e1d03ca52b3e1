//! Token requests, and the encryption of what is stored.

mod token_endpoint;
mod vault;

pub use token_endpoint::TokenEndpoints;
pub use vault::{
    BadKey, CREDENTIALS_KEY, CREDENTIALS_KEY_ALIAS, Cipher, Key, KeyFileError, KeyRing, derived_key, key_file,
    present_key_file,
};
