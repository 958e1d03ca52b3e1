//! What `caribou serve` tells a person at a terminal once it serves: where it is reached, what it uses, what is off and
//! how that is switched on. Programs read the lines on stdout and the log instead.

use std::path::Path;

use caribou_store::Location;

use crate::doors::Addresses;
use crate::settings::{AuthMode, ConfigOrigin, Settings};

/// What is told beside the settings.
pub(super) struct Serving<'s> {
    pub(super) settings: &'s Settings,
    pub(super) addresses: &'s Addresses,
    /// Where the document that names the servers stands, or will.
    pub(super) document: &'s Path,
    /// How many servers are served.
    pub(super) servers: usize,
    /// How many are left out because of what is written of them.
    pub(super) left_out: usize,
}

/// The screen.
pub(super) fn text(serving: &Serving<'_>) -> String {
    let Serving { settings, addresses, .. } = serving;
    let off = |how: &str| format!("off; {how}");
    let rest = &addresses.rest;
    let mcp = match settings.mcp_endpoint.enabled {
        true => format!("{rest}/mcp for all servers, /mcp/NAME for one"),
        false => off("`mcp_endpoint.enabled: true` switches it on"),
    };
    let console = match settings.console.enabled {
        true => format!("{rest}/console"),
        false => off("`console.enabled: true` switches it on"),
    };
    let grpc = addresses.grpc.clone().unwrap_or_else(|| off("`grpc.listen` says where to serve it"));
    let peers = addresses.peers.clone().unwrap_or_else(|| off("`cluster.listen` shares sessions between replicas"));
    let lines = [
        ("REST", format!("{rest}, described at /openapi.json; /healthz, /readyz and /metrics for operators")),
        ("MCP", mcp),
        ("console", console),
        ("gRPC", grpc),
        ("replicas", peers),
        ("servers", servers(serving)),
        ("store", store(settings)),
        ("Redis", redis(settings)),
        ("callers", callers(settings).to_owned()),
        ("TLS", tls(settings).to_owned()),
        ("tool search", tool_search(settings).to_owned()),
        ("threads", settings.threads.root(&settings.data_dir).display().to_string()),
    ];
    let lines = lines.map(|(what, how)| format!("  {what:<12} {how}\n"));
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "\n  Caribou {version}\n\n{}\n  `caribou doctor` looks for what does not work; Ctrl-C stops Caribou.\n",
        lines.concat()
    )
}

fn servers(serving: &Serving<'_>) -> String {
    let Serving { settings, document, servers, left_out, .. } = serving;
    let place = match settings.config.source {
        ConfigOrigin::File => document.display().to_string(),
        ConfigOrigin::Database => "the database".to_owned(),
    };
    match (servers, left_out) {
        (0, 0) => format!("none in {place}; `caribou config add` adds one"),
        (some, 0) => format!("{some} from {place}"),
        (some, out) => format!("{some} from {place}, and {out} left out: `caribou check` says why"),
    }
}

/// Nothing of the address of a server is shown: it may hold a password.
fn store(settings: &Settings) -> String {
    if !settings.has_database() {
        return "none: nothing outlives this process (`database.backend: memory`)".to_owned();
    }
    match settings.database_location() {
        Location::Postgres(_) => "PostgreSQL".to_owned(),
        Location::Sqlite(file) => format!("SQLite in {}; `database_url` names a PostgreSQL", file.display()),
    }
}

fn redis(settings: &Settings) -> String {
    let is_shared = matches!(settings.database_location(), Location::Postgres(_));
    match (&settings.redis.url, is_shared) {
        (Some(_), _) => "changes are heard through it".to_owned(),
        (None, true) => "off; with `redis.url` other replicas hear of changes at once".to_owned(),
        (None, false) => "not needed by one replica".to_owned(),
    }
}

fn callers(settings: &Settings) -> &'static str {
    match settings.auth.mode {
        AuthMode::Disabled => "not told apart, and of this machine only; `auth.mode` changes that",
        AuthMode::ApiKeys => "have keys; `caribou keys create` makes one",
        AuthMode::Jwt => "have tokens of the issuer",
    }
}

fn tls(settings: &Settings) -> &'static str {
    match settings.tls.cert_file {
        Some(_) => "on",
        None => "off; `tls.cert_file` and `tls.key_file` switch it on",
    }
}

fn tool_search(settings: &Settings) -> &'static str {
    match settings.tool_search.enabled {
        true => "on",
        false => "off; `tool_search.enabled: true` shows models names only until they ask",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{File, Inputs, load};

    fn shown(yaml: &str, addresses: &Addresses, left_out: usize) -> String {
        let file = Some(File { path: "/etc/caribou/config.yaml".into(), text: yaml.to_owned() });
        let loaded = load(&Inputs { file, env: &|_| None, flags: Vec::new() });
        assert_eq!(loaded.problems, []);
        text(&Serving {
            settings: &loaded.settings,
            addresses,
            document: Path::new("/srv/e.json"),
            servers: 3,
            left_out,
        })
    }

    #[test]
    fn one_screen_tells_where_it_is_reached_what_it_uses_and_how_to_switch_the_rest_on() {
        let addresses = Addresses { rest: "http://127.0.0.1:8750".to_owned(), grpc: None, peers: None };
        let alone = shown("data_dir: /data\n", &addresses, 1);
        for told in [
            "REST         http://127.0.0.1:8750,",
            "MCP          http://127.0.0.1:8750/mcp ",
            "gRPC         off; `grpc.listen`",
            "replicas     off; `cluster.listen`",
            "servers      3 from /srv/e.json, and 1 left out: `caribou check`",
            "store        SQLite in /data/caribou.db",
            "callers      not told apart",
            "threads      /data",
        ] {
            assert!(alone.contains(told), "{told}: {alone}");
        }
        assert!(alone.lines().count() <= 20, "one screen: {alone}");
    }

    #[test]
    fn what_is_on_says_so_and_no_address_of_a_store_is_shown() {
        // Invariant O3.
        let (grpc, peers) = (Some("grpcs://h:1".to_owned()), Some("peers://h:2".to_owned()));
        let addresses = Addresses { rest: "https://h:3".to_owned(), grpc, peers };
        let yaml = "database_url: 'postgres://ann:hunter2@db/caribou'\nredis: {url: 'redis://:hunter2@cache/'}\n\
                    auth: {mode: api_keys}\nmcp_endpoint: {enabled: false}\n";
        let shared = shown(yaml, &addresses, 0);
        for told in
            ["grpcs://h:1", "peers://h:2", "store        PostgreSQL\n", "callers      have keys", "MCP          off;"]
        {
            assert!(shared.contains(told), "{told}: {shared}");
        }
        assert!(!shared.contains("hunter2") && !shared.contains("cache"), "{shared}");
    }
}
