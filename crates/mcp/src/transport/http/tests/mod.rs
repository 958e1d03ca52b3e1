//! What the HTTP transports do, seen from a server: each test scripts one in this process.

mod answers;
mod eras;
mod fake;
mod modern;
mod redirects;
mod sessions;
mod sse;
mod standing;
