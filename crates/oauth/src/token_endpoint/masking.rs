//! What must not be seen of one exchange: all that was sent, and the tokens that came back (invariant O3).
//!
//! Owns the forms a secret comes back in when a provider quotes the request: as it is, as the form spells it, as a URL
//! spells it, and in Base64, alone or as a client's Basic credential. A text that is shown is masked first and cut then,
//! so that no cut leaves half a secret.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use caribou_core::config::{OAuth, Secret};
use caribou_core::masker::Masker;
use serde_json::{Map, Value};
use url::form_urlencoded::byte_serialize;

/// Members of an answer that hold a token by some standard, whatever the configuration reads.
const TOKENS: [&str; 4] = ["access_token", "refresh_token", "id_token", "device_code"];

/// The longest text of a provider that is shown, in characters.
const MAX_SHOWN: usize = 200;

/// Of the fields of a form, those that are no secret: a provider's hint about them is what an operator needs to read.
const PLAIN: [&str; 3] = ["grant_type", "scope", "audience"];

/// Hides what was sent.
pub(super) fn of_request(oauth: &OAuth, form: &[(String, Secret)]) -> Masker {
    let sent = form.iter().filter(|(name, _)| !PLAIN.contains(&name.as_str())).map(|(_, value)| value.expose());
    let seed = oauth.refresh_token.as_ref().map(Secret::expose);
    let basic = oauth.client_id.as_deref().zip(oauth.client_secret.as_ref().map(Secret::expose));
    let basic = basic.map(|(id, secret)| format!("{id}:{secret}"));
    let url = url::Url::parse(&oauth.token_url).ok();
    let login = url.as_ref().and_then(|url| url.password());
    Masker::new(sent.chain(seed).chain(basic.as_deref()).chain(login).flat_map(spellings))
}

/// Hides what came back as well.
pub(super) fn with_answer(masker: &Masker, oauth: &OAuth, members: &Map<String, Value>) -> Masker {
    let names = TOKENS.into_iter().chain([oauth.token_field.as_str()]);
    let tokens: Vec<String> = names.filter_map(|name| members.get(name)?.as_str()).flat_map(spellings).collect();
    masker.with(tokens.iter().map(String::as_str))
}

/// A text of the provider as it may be shown.
pub(super) fn shown(masker: &Masker, text: &str) -> String {
    let masked = masker.mask(text);
    let plain: String = masked.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_SHOWN).collect();
    if masked.chars().nth(MAX_SHOWN).is_some() { format!("{plain}…") } else { plain }
}

fn spellings(secret: &str) -> Vec<String> {
    let form: String = byte_serialize(secret.as_bytes()).collect();
    let url = form.replace('+', "%20");
    let mut spellings = vec![secret.to_owned(), form.to_lowercase(), url.to_lowercase(), form, url];
    spellings.extend([STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].map(|engine| engine.encode(secret)));
    spellings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masker(secrets: &[&str]) -> Masker {
        Masker::new(secrets.iter().flat_map(|secret| spellings(secret)))
    }

    #[test]
    fn a_secret_is_hidden_in_every_spelling() {
        let masker = masker(&["p&ss w/rd+1", "c:p&ss w/rd+1"]);
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
