//! Token requests, and the encryption of what is stored.
