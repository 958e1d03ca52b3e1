//! The keys of a replica: the first encrypts, all decrypt, so that keys rotate by being put in front (contract 7.7).
//!
//! Owns how the variable is read. A blank one is an unset one, since Compose renders `${VAR:-}` as empty. An entry
//! that is no key refuses the whole, before anything on disk is touched, and is never echoed (O3).

use std::fmt;

use super::key::Key;

/// The variable.
pub const CREDENTIALS_KEY: &str = "CARIBOU_CREDENTIALS_KEY";

/// Its name in deployments of the DeerFlow family; read when the other one says nothing.
pub const CREDENTIALS_KEY_ALIAS: &str = "DEER_FLOW_CREDENTIALS_KEY";

/// Keys, never none.
#[derive(Clone)]
pub struct KeyRing {
    first: Key,
    others: Vec<Key>,
}

/// An entry of the variable is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "entry {place} of {variable} is no key: it must be 44 characters of URL-safe base64 that end with `=`; \
     `caribou keys generate` prints a new one"
)]
pub struct BadKey {
    variable: &'static str,
    /// Counted from 1, blanks left out.
    place: usize,
}

impl KeyRing {
    /// A ring of one.
    pub fn of(key: Key) -> Self {
        Self { first: key, others: Vec::new() }
    }

    /// The keys that the environment names; `None` = it names none.
    ///
    /// # Errors
    /// An entry is no key.
    pub fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, BadKey> {
        for name in [CREDENTIALS_KEY, CREDENTIALS_KEY_ALIAS] {
            if let Some(text) = variable(name)
                && let Some(ring) = Self::parse(name, &text)?
            {
                return Ok(Some(ring));
            }
        }
        Ok(None)
    }

    fn parse(variable: &'static str, text: &str) -> Result<Option<Self>, BadKey> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let keys = (1..).zip(entries).map(|(place, entry)| Key::parse(entry).ok_or(BadKey { variable, place }));
        let mut keys = keys.collect::<Result<Vec<_>, _>>()?.into_iter();
        Ok(keys.next().map(|first| Self { first, others: keys.collect() }))
    }

    /// A key for something else than encryption, made of the first one: the same wherever the ring is.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        self.first.derive(purpose)
    }

    /// The one that encrypts.
    pub(super) fn first(&self) -> &Key {
        &self.first
    }

    /// All of them, the first first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl fmt::Debug for KeyRing {
    /// Not even how many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyRing(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(own: Option<&str>, alias: Option<&str>) -> Result<Option<usize>, String> {
        let variable = |name: &str| match name {
            CREDENTIALS_KEY => own.map(str::to_owned),
            CREDENTIALS_KEY_ALIAS => alias.map(str::to_owned),
            _ => None,
        };
        let ring = KeyRing::from_variables(&variable).map_err(|error| error.to_string())?;
        Ok(ring.map(|ring| ring.all().count()))
    }

    #[test]
    fn a_variable_holds_keys_separated_by_commas_and_a_blank_one_holds_none() {
        // Contract 7.7, variable and blank variable.
        let (a, b) = (Key::generate().unwrap().expose(), Key::generate().unwrap().expose());
        assert_eq!(read(None, None), Ok(None));
        for blank in ["", " ", ",", " , \n,"] {
            assert_eq!(read(Some(blank), None), Ok(None), "{blank:?}");
            assert_eq!(read(Some(blank), Some(&a)), Ok(Some(1)), "{blank:?}");
        }
        assert_eq!(read(Some(&format!(" {}, ,{},", *a, *b)), None), Ok(Some(2)));
        let ring = KeyRing::parse(CREDENTIALS_KEY, &format!("{},{}", *a, *b)).unwrap().unwrap();
        assert_eq!(ring.first().expose(), a);
    }

    #[test]
    fn an_entry_that_is_no_key_is_refused_by_its_place_and_not_echoed() {
        // Contract 7.7, invalid entry; invariant O3.
        let good = Key::generate().unwrap().expose();
        for (text, place) in [("hunter2".to_owned(), 1), (format!("{},,hunter2", *good), 2)] {
            let refused = read(Some(&text), None).unwrap_err();
            assert!(refused.contains(&format!("entry {place} of CARIBOU_CREDENTIALS_KEY")), "{refused}");
            assert!(refused.contains("caribou keys generate"), "{refused}");
            assert!(!refused.contains("hunter2") && !refused.contains(&*good), "{refused}");
        }
        assert!(read(None, Some("hunter2")).unwrap_err().contains("DEER_FLOW_CREDENTIALS_KEY"));
        let ring = KeyRing::of(Key::parse(&good).unwrap());
        assert_eq!(format!("{ring:?}"), "KeyRing(***)");
    }
}
