//! The interceptors that are part of the program, one a file.

mod request_id;

pub(crate) use request_id::RequestIdHeader;
