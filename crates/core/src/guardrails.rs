//! Guardrails: which tools may be called at all, whoever asks (architecture.md §10).
//!
//! Judges visible names, the ones callers know. Owns the verdict and its wording, not where it is asked for. When the
//! rule itself cannot be used, `fail_closed` decides.

use std::collections::HashSet;

/// The spellings of the one provider there is; the second is that of configurations written for DeerFlow.
const ALLOWLIST: [&str; 2] = ["allowlist", "deerflow.guardrails.builtin:AllowlistProvider"];

/// The rule for every call of this replica.
#[derive(Clone, Debug, Default)]
pub struct Guardrails(Rule);

#[derive(Clone, Debug, Default)]
enum Rule {
    /// Switched off.
    #[default]
    Off,
    Lists {
        /// `None` = all that are not denied.
        allowed: Option<HashSet<String>>,
        denied: HashSet<String>,
    },
    /// Closed because the provider cannot be used.
    Closed(Unusable),
}

/// Why the rule that is configured cannot be used. Holds nothing of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// No provider is named.
    #[error("`guardrails.provider.use` names no provider; write `allowlist`")]
    Unnamed,
    /// The provider named does not exist.
    #[error("`guardrails.provider.use` names a provider that does not exist; write `allowlist`")]
    Unknown,
}

/// Why a tool may not be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// It is listed.
    #[error("it is listed in `guardrails.provider.config.denied_tools`")]
    Denied,
    /// It is not listed.
    #[error("it is not listed in `guardrails.provider.config.allowed_tools`")]
    NotAllowed,
    /// Nothing may be called.
    #[error("guardrails are closed: {0}")]
    Closed(Unusable),
}

/// What `guardrails` of the settings says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Whether anything is judged.
    pub enabled: bool,
    /// Whether a rule that cannot be used denies every call instead of none.
    pub fail_closed: bool,
    /// The provider's name.
    pub provider: Option<String>,
    /// Only these may be called; `None` = all, empty = none.
    pub allowed_tools: Option<Vec<String>>,
    /// These may not, even when allowed.
    pub denied_tools: Vec<String>,
}

impl Guardrails {
    /// The rule that is written, and why it cannot be used as written, if so: for the log.
    pub fn of(written: Written) -> (Self, Option<Unusable>) {
        if !written.enabled {
            return (Self(Rule::Off), None);
        }
        let unusable = match written.provider.as_deref() {
            Some(provider) if ALLOWLIST.contains(&provider) => None,
            Some(_) => Some(Unusable::Unknown),
            None => Some(Unusable::Unnamed),
        };
        let rule = match unusable {
            Some(why) if written.fail_closed => Rule::Closed(why),
            Some(_) => Rule::Off,
            None => Rule::Lists {
                allowed: written.allowed_tools.map(|names| names.into_iter().collect()),
                denied: written.denied_tools.into_iter().collect(),
            },
        };
        (Self(rule), unusable)
    }

    /// Whether the tool of this visible name may be called.
    ///
    /// # Errors
    /// The reason why not. What is denied stays denied when it is allowed too.
    pub fn judge(&self, name: &str) -> Result<(), Reason> {
        match &self.0 {
            Rule::Off => Ok(()),
            Rule::Closed(why) => Err(Reason::Closed(*why)),
            Rule::Lists { denied, .. } if denied.contains(name) => Err(Reason::Denied),
            Rule::Lists { allowed: Some(allowed), .. } if !allowed.contains(name) => Err(Reason::NotAllowed),
            Rule::Lists { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(allowed: Option<&[&str]>, denied: &[&str]) -> Written {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Written {
            enabled: true,
            fail_closed: true,
            provider: Some("allowlist".to_owned()),
            allowed_tools: allowed.map(owned),
            denied_tools: owned(denied),
        }
    }

    #[test]
    fn denied_wins_absent_allows_all_and_empty_allows_none() {
        // architecture.md §10, guardrails.
        for (allowed, denied, verdict) in [
            (None, &[][..], Ok(())),
            (None, &["a"][..], Err(Reason::Denied)),
            (Some(&[][..]), &[], Err(Reason::NotAllowed)),
            (Some(&["b"]), &[], Err(Reason::NotAllowed)),
            (Some(&["a"]), &[], Ok(())),
            (Some(&["a"]), &["a"], Err(Reason::Denied)),
            (Some(&["A"]), &[], Err(Reason::NotAllowed)),
        ] {
            let (guardrails, unusable) = Guardrails::of(written(allowed, denied));
            assert_eq!((guardrails.judge("a"), unusable), (verdict, None), "{allowed:?} {denied:?}");
        }
    }

    #[test]
    fn what_is_switched_off_denies_nothing() {
        let (guardrails, unusable) = Guardrails::of(Written { enabled: false, ..written(Some(&[]), &["a"]) });
        assert_eq!((guardrails.judge("a"), unusable), (Ok(()), None));
        assert_eq!(Guardrails::default().judge("a"), Ok(()));
    }

    #[test]
    fn both_spellings_of_the_provider_are_one() {
        for provider in ALLOWLIST {
            let written = Written { provider: Some(provider.to_owned()), ..written(None, &["a"]) };
            assert_eq!(Guardrails::of(written).0.judge("a"), Err(Reason::Denied), "{provider}");
        }
    }

    #[test]
    fn without_a_usable_provider_fail_closed_decides() {
        for (provider, why) in [(None, Unusable::Unnamed), (Some("my.module:Provider"), Unusable::Unknown)] {
            for (fail_closed, verdict) in [(true, Err(Reason::Closed(why))), (false, Ok(()))] {
                let provider = provider.map(str::to_owned);
                let (guardrails, unusable) =
                    Guardrails::of(Written { fail_closed, provider, ..written(Some(&["a"]), &[]) });
                assert_eq!((guardrails.judge("a"), unusable), (verdict, Some(why)));
            }
        }
    }
}
