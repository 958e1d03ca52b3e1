//! `caribou stdio`: a server for clients that only start processes, which passes everything to one over streamable
//! HTTP. Stdout holds the protocol and nothing else.
//!
//! Owns where the credential comes from: a file or a variable, never the command line, which others on this machine can
//! read (invariant O3).

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context as _, bail};
use caribou_core::bounds;
use caribou_core::config::Secret;
use caribou_egress::{WayOut, WayOutOptions};
use caribou_mcp::{Front, FrontOptions};
use clap::Args;

use super::usage::Usage;
use crate::lifecycle::Signals;
use crate::settings::{Log, Settings};
use crate::telemetry::Telemetry;
use crate::tls;

/// The path of Caribou's own endpoint, for an address that names none.
const ENDPOINT: &str = "mcp";

/// The variables that hold the credential; the first that says something counts.
const KEYS: [&str; 2] = ["CARIBOU_API_KEY", "CARIBOU_TOKEN"];

/// More than any credential has.
const MAX_KEY_BYTES: u64 = 64 * 1024;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// A running Caribou, or the whole address of any MCP server over streamable HTTP
    #[arg(long, value_name = "URL", env = "CARIBOU_SERVER")]
    server: reqwest::Url,
    /// Certificates in PEM to trust beside those of the system
    #[arg(long, value_name = "FILE", env = "CARIBOU_CA")]
    ca: Option<PathBuf>,
    /// A file that holds the key or token to present; without it the variable CARIBOU_API_KEY does
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// A header to send, and the variable that holds its value, such as X-Caribou-Thread=THREAD
    #[arg(long = "header", value_name = "NAME=VARIABLE")]
    headers: Vec<HeaderFrom>,
}

/// A header and the variable that holds its value.
#[derive(Clone, Debug)]
struct HeaderFrom {
    name: String,
    variable: String,
}

impl FromStr for HeaderFrom {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        match text.split_once('=') {
            Some((name, variable)) if !name.is_empty() && is_name(variable) => {
                Ok(Self { name: name.to_owned(), variable: variable.to_owned() })
            }
            _ => Err("write the header's name, `=`, and the name of the variable that holds its value"),
        }
    }
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::take()?;
    // Stderr is the client's log: it is told what goes wrong.
    let log = Log { level: "warn".to_owned(), ..Log::default() };
    let telemetry = Telemetry::start(&Settings { log, ..Settings::default() })?;
    let front = Front::new(options(&arguments)?)?;
    let served = front.run(tokio::io::stdin(), tokio::io::stdout(), signals.next()).await;
    telemetry.flush().await;
    served?;
    Ok(ExitCode::SUCCESS)
}

fn options(arguments: &Arguments) -> anyhow::Result<FrontOptions> {
    let ca = arguments.ca.as_deref().map(|file| tls::read_authorities("--ca", file)).transpose()?;
    let options = WayOutOptions { ca_pem: ca.unwrap_or_default(), proxy: None };
    let mut headers = Vec::new();
    if let Some(key) = key(arguments)? {
        headers.push(("Authorization".to_owned(), Secret::new(format!("Bearer {}", key.expose()))));
    }
    for HeaderFrom { name, variable } in &arguments.headers {
        let value = std::env::var(variable).with_context(|| format!("--header {name}: {variable} is not set"))?;
        headers.push((name.clone(), Secret::new(value)));
    }
    Ok(FrontOptions {
        url: address(&arguments.server)?,
        headers,
        way_out: WayOut::new(&options, &|name| std::env::var(name).ok())?,
        max_message_bytes: bounds::MAX_MESSAGE_BYTES,
    })
}

/// Where the server is asked.
fn address(server: &reqwest::Url) -> anyhow::Result<String> {
    if !matches!(server.scheme(), "http" | "https") {
        bail!(Usage("the address of a server starts with http:// or https://"));
    }
    // What stands in a URL is printed in errors and kept in histories.
    if !server.username().is_empty() || server.password().is_some() {
        bail!(Usage("the address of a server holds no user and no password: CARIBOU_API_KEY or --key-file does"));
    }
    let mut server = server.clone();
    if server.path() == "/" {
        server.set_path(ENDPOINT);
    }
    Ok(server.into())
}

/// The credential, if there is one.
fn key(arguments: &Arguments) -> anyhow::Result<Option<Secret>> {
    let text = match &arguments.key_file {
        Some(file) => {
            let mut text = String::new();
            let open = std::fs::File::open(file).and_then(|file| file.take(MAX_KEY_BYTES).read_to_string(&mut text));
            open.with_context(|| format!("--key-file: cannot read {}", file.display()))?;
            Some(text)
        }
        None => KEYS.iter().find_map(|name| std::env::var(name).ok().filter(|text| !text.trim().is_empty())),
    };
    let Some(text) = text else { return Ok(None) };
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("the key has other than visible ASCII characters, or none: write it alone into its file or variable");
    }
    Ok(Some(Secret::new(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_path_is_a_caribous_and_holds_no_credential() {
        let of = |text: &str| address(&text.parse().unwrap());
        assert_eq!(of("http://127.0.0.1:8750").unwrap(), "http://127.0.0.1:8750/mcp");
        assert_eq!(of("https://h/mcp/files?x=1").unwrap(), "https://h/mcp/files?x=1");
        assert!(of("ftp://h/").is_err());
        let error = of("http://ann:hunter2@h/").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_header_is_given_by_its_variable_never_by_its_value() {
        let header: HeaderFrom = "X-Caribou-Thread=THREAD".parse().unwrap();
        assert_eq!((&*header.name, &*header.variable), ("X-Caribou-Thread", "THREAD"));
        for bad in ["X-Key", "=V", "X-Key=", "X-Key=Bearer abc"] {
            assert!(bad.parse::<HeaderFrom>().is_err(), "{bad}");
        }
    }
}
