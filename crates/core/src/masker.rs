//! Keeps configured secrets out of what a person or a log reads (invariant O3).

use std::fmt;

/// A secret shorter than this is not looked for: replacing every `1` of a log helps nobody.
const SHORTEST: usize = 6;

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// Replaces known secret values in text. Prints nothing of what it knows.
#[derive(Clone, Default, PartialEq)]
pub struct Masker {
    /// Longest first, so that a secret that contains another is replaced whole.
    secrets: Vec<String>,
}

impl Masker {
    /// A masker for these values; those too short to be told from ordinary text are left out.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> =
            values.into_iter().map(|v| v.trim().to_owned()).filter(|v| v.len() >= SHORTEST).collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self { secrets }
    }

    /// This masker with further values. Of a header value that starts with a scheme, such as `Bearer`, what follows
    /// is one too: servers print either.
    #[must_use]
    pub fn with<'v>(&self, header_values: impl IntoIterator<Item = &'v str>) -> Self {
        let credential = |value: &'v str| value.trim().split_once(' ').map(|(_, credential)| credential.to_owned());
        let further = header_values.into_iter().flat_map(|value| [Some(value.to_owned()), credential(value)]);
        Self::new(self.secrets.iter().cloned().chain(further.flatten()))
    }

    /// `text` with every known secret replaced.
    pub fn mask(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for secret in &self.secrets {
            if masked.contains(secret.as_str()) {
                masked = masked.replace(secret.as_str(), MASK);
            }
        }
        masked
    }
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masker({} secrets)", self.secrets.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_secret_is_replaced_first_and_short_ones_are_left() {
        let masker = Masker::new(["secret-1".to_owned(), "secret-1-and-more".to_owned(), "1".to_owned()]);
        assert_eq!(masker.mask("a secret-1-and-more b secret-1 c 1"), "a *** b *** c 1");
    }

    #[test]
    fn further_header_values_are_known_with_and_without_their_scheme() {
        // Invariant O3.
        let masker = Masker::new(["secret-1".to_owned()]).with(["Bearer hunter22", "key-of-ann"]);
        assert_eq!(masker.mask("secret-1, Bearer hunter22, hunter22, key-of-ann"), "***, ***, ***, ***");
    }

    #[test]
    fn debug_output_holds_no_secret() {
        assert_eq!(format!("{:?}", Masker::new(["hunter22".to_owned()])), "Masker(1 secrets)");
    }
}
