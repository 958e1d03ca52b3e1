//! Texts that leave us and come back: marked, so that only the caller that was given one can bring it back, about the
//! same thing and unchanged (invariant P1).
//!
//! A mark is made with a key of this deployment. It hides nothing.

use crate::Runtime;
use crate::caller::Caller;

/// Hexadecimal digits of a mark.
const MARK: usize = 32;

impl Runtime {
    /// `text`, marked for this caller and `about` this.
    pub fn seal(&self, caller: &Caller, about: &[&str], text: &str) -> String {
        format!("{}.{text}", self.mark(caller, about, text))
    }

    /// The text of [`Runtime::seal`]; `None` = it was changed, or was given to somebody else, or about something else.
    pub fn unseal(&self, caller: &Caller, about: &[&str], sealed: &str) -> Option<String> {
        let (mark, text) = sealed.split_at_checked(MARK)?;
        let text = text.strip_prefix('.')?;
        let right = self.mark(caller, about, text);
        // Every digit is looked at, so that the time tells nothing of where the first wrong one stands.
        let differs = right.bytes().zip(mark.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
        (differs == 0).then(|| text.to_owned())
    }

    fn mark(&self, caller: &Caller, about: &[&str], text: &str) -> String {
        let parts: Vec<&str> = about.iter().copied().chain([&*caller.principal.id, text]).collect();
        self.router.credentials.mark(&parts).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
