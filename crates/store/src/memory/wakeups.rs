//! Hints, which never leave the process.

use std::time::Instant;

use caribou_ports::BoxFuture;
use caribou_ports::store::{Listening, StoreError, Wake, Wakeups};

use super::Memory;

impl Wakeups for Memory {
    fn wake(&self, wake: Wake) -> BoxFuture<'_, ()> {
        if self.hints.is_news(wake, Instant::now()) {
            self.hints.tell(wake);
        }
        Box::pin(async {})
    }

    fn listen(&self) -> BoxFuture<'_, Result<Box<dyn Listening>, StoreError>> {
        let listening = self.hints.listen();
        Box::pin(async { Ok(listening) })
    }
}
