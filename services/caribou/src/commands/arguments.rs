//! The grammar of the command line, and the arguments that several commands share.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context as _;
use caribou_core::config::Secret;
use clap::{Args, Parser, Subcommand};

use super::{
    audit, check, cluster, config, demo, doctor, keys, migrate, oauth, replicas, serve, servers, sessions, stdio,
    tasks, tools,
};
use crate::settings::{self, Flag, Inputs, Loaded};

/// The variable beside `--config`. Not a setting: it says where settings are.
const CONFIG_VARIABLE: &str = "CARIBOU_CONFIG";

/// A gateway for the Model Context Protocol: many servers, one session for each user and thread.
#[derive(Debug, Parser)]
#[command(name = "caribou", version, propagate_version = true)]
pub(super) struct CommandLine {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve REST until told to stop
    Serve(serve::Arguments),
    /// Check both configuration files and name every problem
    Check(check::Arguments),
    /// Look at everything a replica needs, and say what to do about what does not work
    Doctor(doctor::Arguments),
    /// Give the database the schema that this version needs
    Migrate(migrate::Arguments),
    /// List and call tools
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// List and close live sessions
    Sessions(sessions::Arguments),
    /// Show, answer and cancel what runs in the background
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Be an MCP server over stdin and stdout, for clients that only start processes
    Stdio(stdio::Arguments),
    /// Show who did what
    Audit(audit::Arguments),
    /// Show the servers and how they are
    Servers(servers::Arguments),
    /// Show the replicas that share the work
    Replicas(replicas::Arguments),
    /// See Caribou work, with a server of its own and nothing to install
    Demo(demo::Arguments),
    /// Try a cluster on this machine: replicas over PostgreSQL and Redis, until Ctrl-C
    Cluster(cluster::Arguments),
    /// Make, list and revoke the keys of callers; make and rotate those that encrypt what is stored
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Show and steer the chains of refresh tokens of servers
    #[command(subcommand)]
    Oauth(OAuthCommand),
    /// See and change what is configured
    #[command(subcommand)]
    Config(ConfigCommand),
}

#[derive(Debug, Subcommand)]
pub(super) enum ToolsCommand {
    /// List the tools of all servers
    List(tools::list::Arguments),
    /// Call one tool
    Call(tools::call::Arguments),
}

#[derive(Debug, Subcommand)]
pub(super) enum TasksCommand {
    /// List the tasks of a thread
    List(tasks::list::Arguments),
    /// Show all of one task
    Show(tasks::show::Arguments),
    /// Ask for a task to be cancelled
    Cancel(tasks::cancel::Arguments),
    /// Answer what a task asks
    Answer(tasks::answer::Arguments),
    /// Tell what happens to a task until it has ended
    Watch(tasks::watch::Arguments),
    /// Tell anew what was given up
    Redeliver(tasks::redeliver::Arguments),
}

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Make a key for a caller and print it, this once
    Create(keys::create::Arguments),
    /// List the keys of callers
    List(keys::list::Arguments),
    /// Refuse a key from now on
    Revoke(keys::revoke::Arguments),
    /// Print a new key for CARIBOU_CREDENTIALS_KEY
    Generate,
    /// Encrypt what is stored anew, with the first key of CARIBOU_CREDENTIALS_KEY
    Rotate(keys::rotate::Arguments),
}

#[derive(Debug, Subcommand)]
pub(super) enum OAuthCommand {
    /// List the chains and how they are
    List(oauth::list::Arguments),
    /// Show all of one chain
    Show(oauth::OneServer),
    /// Ask for another access token now
    Refresh(oauth::OneServer),
    /// Forget a chain: start from the configured refresh token
    Forget(oauth::OneServer),
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Write both configuration files with everything that can be set, commented or switched off
    Init(config::init::Arguments),
    /// Show the stored servers, secrets masked
    Get(config::get::Arguments),
    /// Change fields of one server
    Set(config::set::Arguments),
    /// Switch one server on
    Enable(config::switch::Arguments),
    /// Switch one server off
    Disable(config::switch::Arguments),
    /// Add one server
    Add(config::add::Arguments),
    /// Remove one server
    Remove(config::remove::Arguments),
    /// Close every session and ask all servers anew
    Reset(config::reset::Arguments),
    /// List the revisions of the configuration in the database
    History(config::history::Arguments),
    /// Put an earlier revision in force again
    Rollback(config::rollback::Arguments),
    /// Compare a file with what is stored
    Diff(config::diff::Arguments),
    /// Print the JSON Schema of config.yaml
    Schema(config::schema::Arguments),
}

/// Where settings come from.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct SettingsArguments {
    /// Caribou's own settings [env: CARIBOU_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// The file that names the MCP servers [env: CARIBOU_EXTENSIONS_CONFIG_PATH]
    #[arg(long, value_name = "FILE")]
    pub(super) extensions: Option<PathBuf>,
    /// Folder for what Caribou keeps [env: CARIBOU_DATA_DIR]
    #[arg(long, value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
}

/// Who is asked, and how the answer is shown.
#[derive(Clone, Debug, Args)]
pub(super) struct Target {
    /// A running replica; without it the servers are started here and closed at the end
    #[arg(long, value_name = "URL", env = "CARIBOU_SERVER")]
    pub(super) server: Option<reqwest::Url>,
    /// Certificates in PEM to trust beside those of the system, for a replica at https://
    #[arg(long, value_name = "FILE", env = "CARIBOU_CA")]
    pub(super) ca: Option<PathBuf>,
    /// The key or token to present to that replica; better given by its variable, since others on this machine can read
    /// command lines
    #[arg(long, value_name = "TOKEN", env = "CARIBOU_TOKEN", hide_env_values = true)]
    pub(super) token: Option<Token>,
    #[command(flatten)]
    pub(super) settings: SettingsArguments,
    /// Print the answer as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A credential for a replica. Not printable.
#[derive(Clone, Debug)]
pub(super) struct Token(pub(super) Secret);

impl FromStr for Token {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_sendable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_sendable { Ok(Self(Secret::new(text))) } else { Err("a token has visible ASCII characters only") }
    }
}

impl SettingsArguments {
    /// The settings that follow from these arguments, the environment and the file, and what is wrong with them.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn load(&self, listen: Option<SocketAddr>) -> anyhow::Result<Loaded> {
        let env = |name: &str| std::env::var(name).ok();
        let file = match self.config_file() {
            Some(path) => {
                let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                Some(settings::File { path, text })
            }
            None => None,
        };
        Ok(settings::load(&Inputs { file, env: &env, flags: self.flags(listen) }))
    }

    /// The file that Caribou's own settings are read from, if one is named.
    pub(super) fn config_file(&self) -> Option<PathBuf> {
        let variable = || std::env::var(CONFIG_VARIABLE).ok().filter(|path| !path.is_empty());
        self.config.clone().or_else(|| variable().map(PathBuf::from))
    }

    fn flags(&self, listen: Option<SocketAddr>) -> Vec<Flag> {
        let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
        [
            ("--listen", "listen", listen.map(|address| address.to_string())),
            ("--data-dir", "data_dir", text(&self.data_dir)),
            ("--extensions", "extensions_config_path", text(&self.extensions)),
        ]
        .into_iter()
        .filter_map(|(name, path, text)| text.map(|text| Flag { name, path, text }))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_grammar_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn serve_takes_the_four_documented_flags() {
        let line = "caribou serve --config c.yaml --extensions e.json --listen 127.0.0.1:0 --data-dir d";
        let Command::Serve(serve) = CommandLine::try_parse_from(line.split(' ')).unwrap().command else {
            panic!("not serve")
        };
        assert_eq!(serve.listen.map(|address| address.port()), Some(0));
        assert_eq!(serve.settings.config.as_deref(), Some("c.yaml".as_ref()));
        let flags = serve.settings.flags(serve.listen);
        let seen: Vec<_> = flags.iter().map(|flag| (flag.path, flag.text.as_str())).collect();
        assert_eq!(seen, [("listen", "127.0.0.1:0"), ("data_dir", "d"), ("extensions_config_path", "e.json")]);
    }

    #[test]
    fn every_documented_command_is_understood() {
        for line in [
            "caribou check --json",
            "caribou doctor --offline --timeout 3 --json --config c.yaml",
            "caribou tools list --server http://127.0.0.1:8750",
            "caribou tools list --server https://127.0.0.1:8750 --ca ca.pem",
            "caribou tools call demo_add --arg a=1 --arg b=2 --user ann --thread t --timeout 2.5 --progress --json",
            "caribou tools call demo_add --args-json {\"a\":1}",
            "caribou sessions",
            "caribou sessions list --json",
            "caribou sessions close --thread t --from demo --user ann",
            "caribou servers",
            "caribou servers --server http://127.0.0.1:8750 --token t",
            "caribou replicas --server http://127.0.0.1:8750 --json",
            "caribou keys create --user ann --role admin --role agent --allow a_* --deny a_x --label l --expires 30d",
            "caribou keys list --json --config c.yaml",
            "caribou keys revoke 0123456789abcdef --data-dir d",
            "caribou keys generate",
            "caribou keys rotate --config c.yaml",
            "caribou tasks list --user ann --thread t --limit 20 --json",
            "caribou tasks list --all --from reports --active --cursor 00",
            "caribou tasks show mcp-task-1 --thread t",
            "caribou tasks cancel mcp-task-1 --server http://127.0.0.1:8750",
            "caribou tasks answer mcp-task-1 --arg format=pdf --input-id one",
            "caribou tasks answer mcp-task-1 --decline",
            "caribou tasks watch mcp-task-1 --json",
            "caribou tasks redeliver mcp-task-1",
            "caribou audit",
            "caribou audit --user ann --from demo --tool demo_add --outcome denied --by key-1 --limit 10 --json",
            "caribou stdio --server http://127.0.0.1:8750 --key-file k --header X-Caribou-Thread=THREAD",
            "caribou oauth list --json",
            "caribou oauth show shop --server http://127.0.0.1:8750",
            "caribou oauth refresh shop",
            "caribou oauth forget shop --token t",
            "caribou demo --once",
            "caribou migrate --config c.yaml --data-dir d",
            "caribou config schema",
            "caribou config init --dir d",
            "caribou config get time --json",
            "caribou config set time routing.priority=5 env.TOKEN=$TOKEN",
            "caribou config enable time",
            "caribou config disable time --server http://127.0.0.1:8750",
            "caribou config add time command=uvx args=[\"mcp-server-time\"]",
            "caribou config add time --entry {}",
            "caribou config remove time",
            "caribou config reset --json",
            "caribou config diff other.json --extensions e.json",
        ] {
            CommandLine::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    #[test]
    fn arguments_are_given_one_way_only() {
        let line = "caribou tools call add --arg a=1 --args-json {}";
        let error = CommandLine::try_parse_from(line.split(' ')).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }
}
