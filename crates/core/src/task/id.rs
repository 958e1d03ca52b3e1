//! The local name of a task: `mcp-task-` and 32 hexadecimal digits (architecture.md §10). The remote's own name of it
//! never leaves us.

use std::fmt;

use serde::{Serialize, Serializer};

/// What stands before the digits.
const PREFIX: &str = "mcp-task-";

/// One task. Unguessable, because it is made of random bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(pub [u8; 16]);

impl TaskId {
    /// Reads the printed form. `None` = no task can have this name.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?.as_bytes();
        if digits.len() != 32 {
            return None;
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

/// Lower case only, so that one task has one name.
fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_form_is_read_back_and_nothing_else_is() {
        // Contract 6.3, column id.
        let id = TaskId([0x0a, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff]);
        assert_eq!(id.to_string(), "mcp-task-0a0102030405060708090a0b0c0d0eff");
        assert_eq!(TaskId::parse(&id.to_string()), Some(id));
        for wrong in ["", "mcp-task-", "0a0102030405060708090a0b0c0d0eff", "mcp-task-0A0102030405060708090A0B0C0D0EFF"]
        {
            assert_eq!(TaskId::parse(wrong), None, "{wrong}");
        }
        assert_eq!(TaskId::parse(&format!("{id}0")), None);
        assert_eq!(TaskId::parse("mcp-task-0a0102030405060708090a0b0c0d0eéf"), None);
    }
}
