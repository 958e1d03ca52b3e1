//! `caribou check`: everything that is wrong with both configuration files, at once. Starts nothing.

use std::net::SocketAddr;
use std::process::ExitCode;

use caribou_core::config::{Document, Severity};
use caribou_core::launch::{Allowlist, Request, judge};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::arguments::SettingsArguments;
use super::output;
use crate::assemble;
use crate::settings::{Problem, Settings};
use crate::tls::{self, Material, PeerMaterial};

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    settings: SettingsArguments,
    /// Check this address as well
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<SocketAddr>,
    /// Judge what each stdio server would start as the API judges it
    #[arg(long)]
    policy: bool,
    /// Print the problems as JSON
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Default, Serialize)]
struct Found {
    /// Whether a replica would start and serve every server.
    ok: bool,
    /// The file that names the servers, if there is one.
    extensions: Option<String>,
    /// Servers that would be served.
    servers: usize,
    /// Servers that would be left out.
    dropped: usize,
    /// All problems, those of the settings first.
    problems: Vec<Value>,
    /// With `--policy`: a verdict on each stdio server, switched off or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Vec<Verdict>>,
    #[serde(skip)]
    lines: Vec<String>,
}

/// What the launch policy says about one server.
#[derive(Serialize)]
struct Verdict {
    server: String,
    /// Why it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl Found {
    fn add(&mut self, problem: &(impl Serialize + std::fmt::Display), severity: Severity) {
        self.ok &= severity != Severity::Error;
        self.lines.push(problem.to_string());
        self.problems.push(serde_json::to_value(problem).unwrap_or_default());
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut found = Found { ok: true, ..Found::default() };
    let loaded = arguments.settings.load(arguments.listen)?;
    for problem in loaded.problems.iter().chain(&refused_later(&loaded.settings)) {
        found.add(problem, problem.severity);
    }
    check_servers(&loaded.settings, arguments.policy, &mut found)?;
    if arguments.json {
        output::line(serde_json::to_string(&found)?)?;
    } else {
        show(&found)?;
    }
    Ok(if found.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What `serve` would refuse although each setting is right by itself.
pub(super) fn refused_later(settings: &Settings) -> Vec<Problem> {
    let problem = |path: &str, what: String, mend: &str| Problem {
        severity: Severity::Error,
        file: "settings".to_owned(),
        line: None,
        column: None,
        path: format!("$.{path}"),
        what,
        mend: mend.to_owned(),
    };
    let reachable = [("listen", Some(settings.listen)), ("grpc.listen", settings.grpc.listen)];
    let reachable = reachable.into_iter().filter_map(|(path, address)| {
        let refused = settings.auth.may_listen(address?).err()?;
        Some(problem(path, refused.to_string(), "listen on 127.0.0.1, or set `auth.mode`"))
    });
    let certificate = Material::read(&settings.tls).and_then(|found| found.map_or(Ok(()), |found| found.check()));
    let certificate = certificate.err().map(|wrong| problem(wrong.setting, wrong.to_string(), "mend the file"));
    let peers = PeerMaterial::read(&settings.cluster.tls).and_then(|found| found.map_or(Ok(()), |found| found.check()));
    let peers = peers.err().map(|wrong| problem(wrong.setting, wrong.to_string(), "mend the file"));
    let way_out = tls::way_out(&settings.network).err();
    let way_out = way_out.map(|error| problem("network", format!("{error:#}"), "mend the file or the variable"));
    reachable.chain(certificate).chain(peers).chain(way_out).collect()
}

fn check_servers(settings: &Settings, policy: bool, found: &mut Found) -> anyhow::Result<()> {
    let Some(file) = assemble::find_servers(settings)? else { return Ok(()) };
    found.extensions = Some(file.found.path.display().to_string());
    let problems = match assemble::understand(settings, &file.source()) {
        Ok(document) => {
            let enabled = document.servers.iter().filter(|server| server.config.as_ref().is_ok_and(|c| c.enabled));
            found.servers = enabled.count();
            found.dropped = document.servers.iter().filter(|server| server.config.is_err()).count();
            found.policy = policy.then(|| verdicts(&document));
            document.problems
        }
        Err(problems) => {
            found.ok = false;
            problems
        }
    };
    found.ok &= found.dropped == 0 && found.policy.iter().flatten().all(|verdict| verdict.refused.is_none());
    for problem in &problems {
        found.add(problem, problem.severity);
    }
    Ok(())
}

/// The API's verdicts on a document. The file itself may express anything: a replica starts what it names.
fn verdicts(document: &Document) -> Vec<Verdict> {
    let allowlist = Allowlist::from_env(&|name| std::env::var(name).ok());
    let servers = document.servers.iter().filter_map(|server| server.config.as_ref().ok());
    let requests = servers.filter_map(|config| Some((config.name.to_string(), Request::of(config)?)));
    let judged =
        |(server, request)| Verdict { server, refused: judge(&request, &allowlist).err().map(|r| r.to_string()) };
    requests.map(judged).collect()
}

fn show(found: &Found) -> std::io::Result<()> {
    for line in &found.lines {
        output::line(line)?;
    }
    for Verdict { server, refused } in found.policy.iter().flatten() {
        let server = output::printable(server);
        match refused {
            None => output::line(format_args!("{server}: accepted by the launch policy"))?,
            Some(refusal) => output::line(format_args!("{server}: refused by the launch policy: {refusal}"))?,
        }
    }
    match &found.extensions {
        None => output::line("no file names any servers: write extensions_config.json, or name one by --extensions")?,
        Some(file) => {
            let Found { servers, dropped, .. } = found;
            output::line(format_args!("{file}: {servers} servers to serve, {dropped} left out"))?;
        }
    }
    output::line(if found.ok { "all is well" } else { "there are errors" })
}
