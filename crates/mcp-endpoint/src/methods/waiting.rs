//! A request of a legacy client that waits, at its server, for what the client answers (mcp.md 14.3).

use caribou_ports::BoxFuture;

/// Such a request, while it waits. A client that cancels meanwhile has it cancelled where it waits.
pub(super) struct Waiting(Option<BoxFuture<'static, ()>>);

impl Waiting {
    /// With what tells the server that its caller is gone; `None` = it does not wait.
    pub(super) fn new(farewell: Option<impl Future<Output = ()> + Send + 'static>) -> Self {
        Self(farewell.map(|farewell| Box::pin(farewell) as BoxFuture<'static, ()>))
    }

    /// The client has answered.
    pub(super) fn over(mut self) {
        self.0 = None;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(farewell) = self.0.take() else { return };
        if let Ok(here) = tokio::runtime::Handle::try_current() {
            here.spawn(farewell);
        }
    }
}
