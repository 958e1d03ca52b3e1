//! The web console: pages for people who operate Caribou, served by the binary itself at `/console`.
//!
//! Owns the files of the pages, which are built in, and the stream that tells an open page what to read anew. Every
//! fact on a page comes from the same REST routes that everybody may call, with the caller's own credential: the
//! console can do nothing that its user cannot do without it. The files themselves hold nothing about this replica, so
//! they are served to anybody; what is read over them is not. Pages run no script but their own and are shown in no
//! frame. When the stream breaks, pages say so and come back; nothing is lost, since they read the state and not its
//! changes.

mod events;
mod files;
mod look;
mod section;
mod watch;

pub(crate) use events::{__path_console_events, console_events};
pub(crate) use files::{is_file, routes};
pub(crate) use watch::Watch;
