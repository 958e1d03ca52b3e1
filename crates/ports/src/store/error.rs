//! Why the store could not be asked. Holds no value that was stored, and nothing of the address (invariant O3).

use caribou_core::failure::Class;

/// Why a request to the store has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached, is overloaded, or took too long before anything was changed.
    #[error("the store cannot be used now: {0}")]
    Unavailable(String),
    /// The connection ended, or the deadline passed, while a change was under way: it may have been committed.
    #[error("it is unknown whether the store made the change: {0}")]
    OutcomeUnknown(String),
    /// Two changes met and this one was undone.
    #[error("the store undid the change because of another one: {0}")]
    Conflict(String),
    /// The store may not be used with these credentials or rights.
    #[error("the store refuses us: {0}")]
    Denied(String),
    /// The store does not hold what this version of Caribou expects, or Caribou asks for nonsense.
    #[error("the store and this version of Caribou do not fit: {0}")]
    Mismatch(String),
}

impl StoreError {
    /// What may be done about it.
    pub fn class(&self) -> Class {
        match self {
            Self::Unavailable(_) => Class::Retry,
            Self::OutcomeUnknown(_) => Class::Unknown,
            Self::Conflict(_) => Class::Conflict,
            Self::Denied(_) => Class::Denied,
            Self::Mismatch(_) => Class::Bug,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_may_have_been_made_is_never_a_retry() {
        assert_eq!(StoreError::OutcomeUnknown(String::new()).class(), Class::Unknown);
        assert_eq!(StoreError::Unavailable(String::new()).class(), Class::Retry);
    }
}
