//! What a caller can be asked, as its capabilities say, and what a question needs of them (mcp.md §2.4, §4).

use caribou_core::raw::{Members, text};
use serde_json::value::RawValue;

/// The questions that servers ask.
pub(crate) const ELICIT: &str = "elicitation/create";
pub(crate) const SAMPLE: &str = "sampling/createMessage";
pub(crate) const LIST_ROOTS: &str = "roots/list";

/// The capability that this question is asked by; `None` = it is none that is passed on.
pub(crate) fn needs(method: &str) -> Option<&'static str> {
    match method {
        ELICIT => Some("elicitation"),
        SAMPLE => Some("sampling"),
        LIST_ROOTS => Some("roots"),
        _ => None,
    }
}

/// What a caller can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    form: bool,
    url: bool,
    sampling: bool,
    sampling_with_tools: bool,
    roots: bool,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Form,
    Url,
    Sampling,
    SamplingWithTools,
    Roots,
}

impl Abilities {
    /// Those in these capabilities. An elicitation without modes means forms.
    pub(crate) fn of(capabilities: &RawValue) -> Self {
        let Some(members) = Members::of(capabilities) else { return Self::default() };
        let within = |name: &str| members.get(name).and_then(Members::of);
        let modes = within("elicitation");
        let has = |mode: &str| modes.as_ref().is_some_and(|modes| modes.get(mode).is_some());
        let sampling = within("sampling");
        Self {
            form: modes.is_some() && (has("form") || !has("url")),
            url: has("url"),
            sampling_with_tools: sampling.as_ref().is_some_and(|sampling| sampling.get("tools").is_some()),
            sampling: sampling.is_some(),
            roots: within("roots").is_some(),
        }
    }

    /// Whether there are none.
    pub(crate) fn are_none(self) -> bool {
        self == Self::default()
    }

    /// Whether this one is among them.
    pub(crate) fn have(self, need: Need) -> bool {
        match need {
            Need::Form => self.form,
            Need::Url => self.url,
            Need::Sampling => self.sampling,
            Need::SamplingWithTools => self.sampling_with_tools,
            Need::Roots => self.roots,
        }
    }
}

impl Need {
    /// What this question needs; `None` = it is none that is passed on.
    pub(crate) fn of(method: &str, params: Option<&RawValue>) -> Option<Self> {
        let params = params.and_then(Members::of);
        let member = |name: &str| params.as_ref().and_then(|params| params.get(name));
        Some(match method {
            ELICIT if member("mode").and_then(text).is_some_and(|mode| mode == "url") => Self::Url,
            ELICIT => Self::Form,
            SAMPLE if member("tools").is_some() => Self::SamplingWithTools,
            SAMPLE => Self::Sampling,
            LIST_ROOTS => Self::Roots,
            _ => return None,
        })
    }

    /// The capabilities that a caller lacks, as error -32021 names them.
    pub(crate) fn required(self) -> &'static str {
        match self {
            Self::Form => r#"{"elicitation":{}}"#,
            Self::Url => r#"{"elicitation":{"url":{}}}"#,
            Self::Sampling => r#"{"sampling":{}}"#,
            Self::SamplingWithTools => r#"{"sampling":{"tools":{}}}"#,
            Self::Roots => r#"{"roots":{}}"#,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn an_elicitation_without_modes_means_forms() {
        // mcp.md §2.4.
        for (capabilities, form, url) in [
            (r#"{"elicitation":{}}"#, true, false),
            (r#"{"elicitation":{"form":{}}}"#, true, false),
            (r#"{"elicitation":{"url":{}}}"#, false, true),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, true, true),
            (r#"{"sampling":{}}"#, false, false),
            ("{}", false, false),
        ] {
            let abilities = Abilities::of(&raw(capabilities));
            assert_eq!((abilities.have(Need::Form), abilities.have(Need::Url)), (form, url), "{capabilities}");
        }
        assert!(Abilities::of(&raw("{}")).are_none() && Abilities::of(&raw("[]")).are_none());
    }

    #[test]
    fn a_question_needs_what_it_is_made_of() {
        for (method, params, need) in [
            (ELICIT, r#"{"message":"?"}"#, Some(Need::Form)),
            (ELICIT, r#"{"mode":"url"}"#, Some(Need::Url)),
            (SAMPLE, "{}", Some(Need::Sampling)),
            (SAMPLE, r#"{"tools":[]}"#, Some(Need::SamplingWithTools)),
            (LIST_ROOTS, "{}", Some(Need::Roots)),
            ("x/unknown", "{}", None),
        ] {
            assert_eq!(Need::of(method, Some(&raw(params))), need, "{method} {params}");
        }
        let none = Abilities::of(&raw(r#"{"sampling":{}}"#));
        assert!(none.have(Need::Sampling) && !none.have(Need::SamplingWithTools));
    }
}
