//! What pages are about, in the parts that change by themselves.

use serde::Serialize;
use utoipa::ToSchema;

/// A part of what pages show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Section {
    /// Who takes part.
    Replicas,
    /// How servers are, and what they have.
    Servers,
    /// Which sessions live, and where.
    Sessions,
    /// The tasks of everybody.
    Tasks,
    /// The chains of refresh tokens.
    Chains,
    /// What was done.
    Audit,
    /// The stored configuration.
    Configuration,
}

impl Section {
    /// All, in the order of their numbers.
    pub(super) const ALL: [Self; 7] =
        [Self::Replicas, Self::Servers, Self::Sessions, Self::Tasks, Self::Chains, Self::Audit, Self::Configuration];

    /// Whether anybody may know when it changes. Of the others, even that tells of somebody else (invariant P1).
    pub(super) fn is_everybodys(self) -> bool {
        self == Self::Servers
    }
}

/// One value a section.
pub(super) type BySection<T> = [T; Section::ALL.len()];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_section_is_its_place() {
        for (place, section) in Section::ALL.into_iter().enumerate() {
            assert_eq!(section as usize, place);
        }
    }
}
