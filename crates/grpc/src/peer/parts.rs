//! A long result on its way, in parts: so that it delays nothing else on its connection, and is known to be whole.

use std::sync::Arc;

use caribou_proto::peer::v1;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// The largest part, and the largest result that needs none.
const PART: usize = 256 * 1024;

/// The largest result that is put together: beyond what any bound of a server is meant to allow. The bound of the
/// server itself is kept by the owner of its session.
const MOST: usize = 1024 * 1024 * 1024;

/// A result that goes out.
pub(super) struct Parting {
    text: Arc<RawValue>,
    at: usize,
    hash: Sha256,
}

impl Parting {
    /// Begins with a long result; `Err` gives a short one back.
    pub(super) fn begin(text: Arc<RawValue>) -> Result<Self, Arc<RawValue>> {
        if text.get().len() <= PART { Err(text) } else { Ok(Self { text, at: 0, hash: Sha256::new() }) }
    }

    /// The next part; `Err` is what comes after the last one.
    pub(super) fn next(&mut self) -> Result<Vec<u8>, v1::Done> {
        let text = self.text.get().as_bytes();
        if self.at == text.len() {
            let sha256 = self.hash.clone().finalize().to_vec();
            return Err(v1::Done { length: text.len() as u64, sha256, answer: None });
        }
        let part = &text[self.at..text.len().min(self.at + PART)];
        self.hash.update(part);
        self.at += part.len();
        Ok(part.to_vec())
    }
}

/// A result that comes in.
#[derive(Default)]
pub(super) struct Joining {
    text: Vec<u8>,
}

/// The parts are not those of one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

impl Joining {
    /// Takes the next part.
    ///
    /// # Errors
    /// It is too much together.
    pub(super) fn add(&mut self, part: &[u8]) -> Result<(), Broken> {
        if self.text.len() + part.len() > MOST {
            return Err(Broken);
        }
        self.text.extend_from_slice(part);
        Ok(())
    }

    /// The text, once it is known to be that of this end; `None` = there are no parts.
    ///
    /// # Errors
    /// It is another one.
    pub(super) fn end(self, done: &v1::Done) -> Result<Option<String>, Broken> {
        if self.text.len() as u64 != done.length {
            return Err(Broken);
        }
        if done.length == 0 {
            return Ok(None);
        }
        if Sha256::digest(&self.text)[..] != done.sha256[..] {
            return Err(Broken);
        }
        String::from_utf8(self.text).map(Some).map_err(|_| Broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize) -> Arc<RawValue> {
        RawValue::from_string(format!("\"{}\"", "\u{fc}".repeat(length))).unwrap().into()
    }

    fn parted(text: Arc<RawValue>) -> (Vec<Vec<u8>>, v1::Done) {
        let mut parting = Parting::begin(text).ok().unwrap();
        let mut parts = Vec::new();
        loop {
            match parting.next() {
                Ok(part) => parts.push(part),
                Err(done) => return (parts, done),
            }
        }
    }

    fn joined(parts: &[Vec<u8>], done: &v1::Done) -> Result<Option<String>, Broken> {
        let mut joining = Joining::default();
        parts.iter().try_for_each(|part| joining.add(part))?;
        joining.end(done)
    }

    #[test]
    fn a_long_result_comes_together_byte_for_byte() {
        // Invariant W1. Parts end within characters.
        let long = text(PART);
        let (parts, done) = parted(long.clone());
        assert!(parts.len() == 3 && parts.iter().all(|part| part.len() <= PART), "{}", parts.len());
        assert_eq!(joined(&parts, &done).unwrap().as_deref(), Some(long.get()));
    }

    #[test]
    fn a_short_one_needs_no_parts() {
        assert!(Parting::begin(text(PART / 2 - 1)).is_err());
        assert!(Parting::begin(text(PART / 2)).is_ok());
        assert_eq!(joined(&[], &v1::Done::default()), Ok(None));
    }

    #[test]
    fn parts_that_are_missing_doubled_or_swapped_are_noticed() {
        let (parts, done) = parted(text(PART));
        let odd = [vec![1, 0, 2], vec![0, 1], vec![0, 1, 2, 2], vec![]];
        for order in odd {
            let parts: Vec<_> = order.iter().map(|at| parts[*at].clone()).collect();
            assert_eq!(joined(&parts, &done), Err(Broken), "{order:?}");
        }
    }
}
