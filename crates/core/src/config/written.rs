//! Whether secrets themselves stand in a document, rather than the names of variables that hold them: then whoever may
//! read the file has them.
//!
//! Says so of what is surely secret: what a secret-shaped key names (contract 1.12), credentials of OAuth and of users,
//! and those in a URL. A value of the environment that only may be one does not count.

use super::document::parse_literally;
use super::mask::{arguments_behind_secret_names, is_secret_shaped};
use super::server::{Secret, ServerConfig, Transport};
use super::{Source, web_address};

/// Whether a server of this document has a secret written into it. One that cannot be used does not count.
pub fn holds_secrets(source: &Source<'_>) -> bool {
    let Ok(document) = parse_literally(source) else { return false };
    let servers = document.servers.iter().filter_map(|entry| entry.config.as_ref().ok());
    let is_written = |secret: &String| !secret.is_empty() && !secret.starts_with('$');
    servers.flat_map(|server| secrets_of(server)).any(|secret| is_written(&secret))
}

fn secrets_of(server: &ServerConfig) -> Vec<String> {
    let mut secrets = Vec::new();
    let named = |pairs: &[(String, Secret)]| {
        let secret = pairs.iter().filter(|(name, _)| is_secret_shaped(name));
        secret.map(|(_, value)| value.expose().to_owned()).collect::<Vec<_>>()
    };
    match &server.transport {
        Transport::Stdio(stdio) => {
            secrets.extend(named(&stdio.env));
            secrets.extend(arguments_behind_secret_names(stdio.args.iter().map(String::as_str)));
        }
        Transport::Http(remote) | Transport::Sse(remote) => {
            secrets.extend(named(&remote.headers));
            secrets.extend(web_address::secrets(remote.url.trim()));
        }
    }
    if let Some(oauth) = &server.oauth {
        let both = [&oauth.client_secret, &oauth.refresh_token];
        secrets.extend(both.into_iter().flatten().map(|secret| secret.expose().to_owned()));
    }
    if let Some(user_auth) = &server.user_auth {
        secrets.extend(user_auth.users.iter().map(|(_, value)| value.expose().to_owned()));
    }
    secrets
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn holds(server: &str) -> bool {
        let text = format!(r#"{{"mcpServers":{{"a":{server}}}}}"#);
        holds_secrets(&Source { file: Path::new("/x.json"), text: text.as_bytes() })
    }

    #[test]
    fn secrets_are_told_from_names_of_variables_and_from_what_is_no_secret() {
        for server in [
            r#"{"command":"npx","env":{"API_KEY":"hunter2"}}"#,
            r#"{"command":"npx","args":["--token=hunter2"]}"#,
            r#"{"command":"npx","args":["--api-key","hunter2"]}"#,
            r#"{"type":"http","url":"https://h/","headers":{"Authorization":"Bearer hunter2"}}"#,
            r#"{"type":"http","url":"https://ann:hunter2@h/"}"#,
        ] {
            assert!(holds(server), "{server}");
        }
        for server in [
            r#"{"command":"npx","env":{"API_KEY":"$API_KEY","MEMORY_FILE_PATH":"/srv/memory.json","TOKEN":""}}"#,
            r#"{"command":"npx","args":["--token","$TOKEN","-y"]}"#,
            r#"{"type":"http","url":"https://h/","headers":{"Authorization":"$AUTH","X-Team":"blue"}}"#,
        ] {
            assert!(!holds(server), "{server}");
        }
    }
}
