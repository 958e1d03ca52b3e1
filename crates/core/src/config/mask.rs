//! Which values of a server are secret.
//!
//! Owns the test for secret-shaped keys (contract 1.12) and the choice of values that must not appear in what a
//! server prints (O3). Replacing them is `core::masker`'s. Looks at what is there, right or wrong, so that a server
//! that is switched off or half configured leaks nothing either.

use super::env_refs::Text;
use super::fields::Fields;
use super::web_address;
use crate::masker::Masker;

const SECRET_WORDS: [&str; 13] = [
    "access_key",
    "api_key",
    "apikey",
    "authorization",
    "bearer",
    "client_secret",
    "credential",
    "credentials",
    "passwd",
    "password",
    "private_key",
    "secret",
    "token",
];

/// An environment value of this many characters is rather a key than a flag.
const LONG_VALUE: usize = 8;

/// Whether a key names a secret: `refreshToken` and `OPENAI_API_KEY` do, `cwd` and `customFlag` do not
/// (contract 1.12).
pub(super) fn is_secret_shaped(key: &str) -> bool {
    let snake = format!("_{}_", snake_case(key));
    SECRET_WORDS.iter().any(|word| snake.contains(&format!("_{word}_")))
}

fn snake_case(key: &str) -> String {
    let letters: Vec<char> = key.chars().collect();
    let mut snake = String::with_capacity(key.len() + 4);
    for (i, letter) in letters.iter().enumerate() {
        let after_small = i > 0 && (letters[i - 1].is_lowercase() || letters[i - 1].is_ascii_digit());
        // The last capital of a run starts the next word: `APIKey` is `api_key`.
        let ends_run = i > 0 && letters[i - 1].is_uppercase() && letters.get(i + 1).is_some_and(|c| c.is_lowercase());
        if letter.is_uppercase() && (after_small || ends_run) {
            snake.push('_');
        }
        if letter.is_alphanumeric() { snake.extend(letter.to_lowercase()) } else { snake.push('_') }
    }
    snake
}

/// What knows the secrets of one server.
pub(super) fn masker(server: &Fields<'_>) -> Masker {
    let mut secrets = Vec::new();
    for (key, text) in map(server, "env") {
        if text.from_env || is_secret_shaped(key) || text.value.chars().count() >= LONG_VALUE {
            secrets.push(text.value.clone());
        }
    }
    push_arguments(&mut secrets, server);
    for key in ["url", "message_url"] {
        let address = server.get(key).and_then(|field| field.as_text());
        secrets.extend(address.into_iter().flat_map(|address| web_address::secrets(address.value.trim())));
    }
    for (_, text) in map(server, "headers") {
        push_header_value(&mut secrets, &text.value);
    }
    if let Some(oauth) = server.get("oauth").and_then(|field| field.as_object()) {
        for key in ["client_secret", "refresh_token"] {
            secrets.extend(oauth.get(key).and_then(|field| field.as_text()).map(|text| text.value.clone()));
        }
        secrets.extend(map(&oauth, "extra_token_params").into_iter().map(|(_, text)| text.value.clone()));
    }
    if let Some(user_auth) = server.get("user_auth").and_then(|field| field.as_object()) {
        for (_, text) in map(&user_auth, "users") {
            push_header_value(&mut secrets, &text.value);
        }
    }
    Masker::new(secrets)
}

/// Arguments that come from the environment, and those that follow a name of a secret: as the next argument, or behind
/// `=` or `:` in the same one, as in `--api-key KEY`, `--token=KEY` and `--header "Authorization: Bearer KEY"`.
fn push_arguments(secrets: &mut Vec<String>, server: &Fields<'_>) {
    let args =
        || server.get("args").and_then(|field| field.as_list()).into_iter().flatten().filter_map(|arg| arg.as_text());
    for text in args().filter(|text| text.from_env) {
        push_header_value(secrets, &text.value);
    }
    for value in arguments_behind_secret_names(args().map(|text| text.value.as_str())) {
        push_header_value(secrets, &value);
    }
}

/// The arguments, or parts of them, that a secret-shaped name stands before.
pub(super) fn arguments_behind_secret_names<'a>(args: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut found = Vec::new();
    let mut follows_name = false;
    for arg in args {
        let parts = arg.split_once(['=', ':']);
        if follows_name {
            found.push(arg.to_owned());
        }
        found.extend(parts.filter(|(name, _)| is_secret_shaped(name)).map(|(_, value)| value.trim().to_owned()));
        follows_name = parts.is_none() && arg.starts_with('-') && is_secret_shaped(arg);
    }
    found
}

/// A header value, and the credential in it when a scheme such as `Bearer` stands before it: servers print either.
fn push_header_value(secrets: &mut Vec<String>, value: &str) {
    let value = value.trim();
    secrets.push(value.to_owned());
    if let Some((scheme, credential)) = value.split_once(' ')
        && !scheme.is_empty()
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    {
        secrets.push(credential.to_owned());
    }
}

fn map<'a>(fields: &Fields<'a>, key: &str) -> Vec<(&'a str, &'a Text)> {
    let Some(map) = fields.get(key).and_then(|field| field.as_object()) else { return Vec::new() };
    map.iter().filter_map(|(key, field)| field.as_text().map(|text| (key, text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_shaped_keys_are_recognised_by_whole_words() {
        // Contract 1.12.
        for key in [
            "refreshToken",
            "access_key",
            "API-KEY",
            "OPENAI_API_KEY",
            "APIKey",
            "apikey",
            "x.bearer",
            "dbPassword2Token",
        ] {
            assert!(is_secret_shaped(key), "{key}");
        }
        for key in ["customFlag", "cwd", "tokenizer", "keyboard", "", "secretary", "max_tokens"] {
            assert!(!is_secret_shaped(key), "{key}");
        }
    }
}
