//! What the HTTP transports do, seen from a server: each test scripts one in this process.

mod answers;
mod credentials;
mod eras;
mod fake;
mod front;
mod guarded;
mod modern;
mod redirects;
mod sessions;
mod sse;
mod standing;
