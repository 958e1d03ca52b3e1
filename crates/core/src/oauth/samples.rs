//! What the tests of this folder share. Only built for tests.

use std::path::Path;

use crate::config::{OAuth, Source, parse};

/// The field `oauth` with these members beside its address.
pub(super) fn oauth(members: &str) -> OAuth {
    let text = format!(
        r#"{{"mcpServers": {{"a": {{"type": "http", "url": "http://h", "oauth": {{"token_url": "https://t", {members}}}}}}}}}"#
    );
    let document = parse(&Source { file: Path::new("/etc/caribou/x.json"), text: text.as_bytes() }, &|_| None);
    let server = document.expect(members).servers.remove(0).config.expect(members);
    server.oauth.clone().expect("written above")
}
