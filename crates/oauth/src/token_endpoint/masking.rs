//! What must not be seen of one exchange: all that was sent, and the tokens that came back (invariant O3).
//!
//! Owns which values those are; `core::masker` knows their spellings. A text that is shown is masked first and cut
//! then, so that no cut leaves half a secret.

use caribou_core::config::{OAuth, Secret};
use caribou_core::masker::Masker;
use serde_json::{Map, Value};

/// Members of an answer that hold a token by some standard, whatever the configuration reads.
const TOKENS: [&str; 4] = ["access_token", "refresh_token", "id_token", "device_code"];

/// The longest text of a provider that is shown, in characters.
const MAX_SHOWN: usize = 200;

/// Of the fields of a form, those that are no secret: a provider's hint about them is what an operator needs to read.
const PLAIN: [&str; 3] = ["grant_type", "scope", "audience"];

/// Hides what was sent, `basic` as the credentials of HTTP Basic.
pub(super) fn of_request(oauth: &OAuth, form: &[(String, Secret)], basic: Option<&Secret>) -> Masker {
    let sent = form.iter().filter(|(name, _)| !PLAIN.contains(&name.as_str())).map(|(_, value)| value.expose());
    let seed = oauth.refresh_token.as_ref().map(Secret::expose);
    let client = oauth.client_secret.as_ref().map(Secret::expose);
    let url = url::Url::parse(&oauth.token_url).ok();
    let login = url.as_ref().and_then(|url| url.password());
    let id = oauth.client_id.as_deref();
    let basic = basic.map(Secret::expose);
    Masker::new(sent.chain(seed).chain(client).chain(login).chain(id).chain(basic).map(str::to_owned))
}

/// Hides what came back as well.
pub(super) fn with_answer(masker: &Masker, oauth: &OAuth, members: &Map<String, Value>) -> Masker {
    let names = TOKENS.into_iter().chain([oauth.token_field.as_str()]);
    masker.with(names.filter_map(|name| members.get(name)?.as_str()))
}

/// A text of the provider as it may be shown.
pub(super) fn shown(masker: &Masker, text: &str) -> String {
    let masked = masker.mask(text);
    let plain: String = masked.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_SHOWN).collect();
    if masked.chars().nth(MAX_SHOWN).is_some() { format!("{plain}…") } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masker(secrets: &[&str]) -> Masker {
        Masker::new(secrets.iter().map(|secret| (*secret).to_owned()))
    }

    #[test]
    fn a_secret_is_hidden_in_every_spelling() {
        let masker = masker(&["p&ss w/rd+1"]);
        for spelling in
            ["p&ss w/rd+1", "p%26ss+w%2Frd%2B1", "p%26ss%20w%2frd%2b1", "cCZzcyB3L3JkKzE=", "YzpwJnNzIHcvcmQrMQ"]
        {
            assert_eq!(shown(&masker, &format!("<{spelling}>")), "<***>", "{spelling}");
        }
    }

    #[test]
    fn a_long_text_is_masked_before_it_is_cut_and_stays_on_one_line() {
        let masker = masker(&["hunter2-hunter2"]);
        let text = format!("{}hunter2-hunter2", "x".repeat(MAX_SHOWN - 5));
        let cut = shown(&masker, &text);
        assert!(!cut.contains("hunt") && cut.chars().count() <= MAX_SHOWN + 1, "{cut}");
        assert_eq!(shown(&masker, "a\nb\u{1b}[31m"), "a b [31m");
    }
}
