//! From the command line to an exit code.

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use super::arguments::{Command, CommandLine, ConfigCommand, KeysCommand, OAuthCommand, TasksCommand, ToolsCommand};
use super::usage::{self, Usage};
use super::{
    audit, check, cluster, config, demo, doctor, keys, migrate, oauth, replicas, serve, servers, sessions, stdio,
    tasks, tools,
};

/// Runs the command that this process was started for.
pub(crate) fn run() -> ExitCode {
    // clap itself prints help and wrong usage, and ends the process with 0 or 2.
    let command = CommandLine::parse().command;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let done = runtime.block_on(execute(command));
    // A blocking read that never ends must not hold the exit.
    runtime.shutdown_background();
    done.unwrap_or_else(|error| failed(&error))
}

async fn execute(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(arguments) => Box::pin(serve::run(arguments)).await,
        Command::Check(arguments) => check::run(&arguments),
        Command::Doctor(arguments) => Box::pin(doctor::run(arguments)).await,
        Command::Migrate(arguments) => migrate::run(arguments).await,
        Command::Tools(ToolsCommand::List(arguments)) => tools::list::run(arguments).await,
        Command::Tools(ToolsCommand::Call(arguments)) => tools::call::run(arguments).await,
        Command::Sessions(arguments) => sessions::run(arguments).await,
        Command::Stdio(arguments) => Box::pin(stdio::run(arguments)).await,
        Command::Tasks(command) => execute_tasks(command).await,
        Command::Audit(arguments) => audit::run(arguments).await,
        Command::Servers(arguments) => servers::run(arguments).await,
        Command::Replicas(arguments) => replicas::run(arguments).await,
        Command::Demo(arguments) => Box::pin(demo::run(arguments)).await,
        Command::Cluster(arguments) => Box::pin(cluster::run(arguments)).await,
        Command::Keys(KeysCommand::Create(arguments)) => keys::create::run(arguments).await,
        Command::Keys(KeysCommand::List(arguments)) => keys::list::run(arguments).await,
        Command::Keys(KeysCommand::Revoke(arguments)) => keys::revoke::run(arguments).await,
        Command::Keys(KeysCommand::Generate) => keys::generate::run(),
        Command::Keys(KeysCommand::Rotate(arguments)) => keys::rotate::run(arguments).await,
        Command::Oauth(command) => execute_oauth(command).await,
        Command::Config(command) => execute_config(command).await,
    }
}

async fn execute_tasks(command: TasksCommand) -> anyhow::Result<ExitCode> {
    match command {
        TasksCommand::List(arguments) => tasks::list::run(arguments).await,
        TasksCommand::Show(arguments) => tasks::show::run(arguments).await,
        TasksCommand::Cancel(arguments) => tasks::cancel::run(arguments).await,
        TasksCommand::Answer(arguments) => tasks::answer::run(arguments).await,
        TasksCommand::Watch(arguments) => tasks::watch::run(arguments).await,
        TasksCommand::Redeliver(arguments) => tasks::redeliver::run(arguments).await,
    }
}

async fn execute_oauth(command: OAuthCommand) -> anyhow::Result<ExitCode> {
    match command {
        OAuthCommand::List(arguments) => oauth::list::run(arguments).await,
        OAuthCommand::Show(one) => oauth::show::run(one).await,
        OAuthCommand::Refresh(one) => oauth::refresh::run(one).await,
        OAuthCommand::Forget(one) => oauth::forget::run(one).await,
    }
}

async fn execute_config(command: ConfigCommand) -> anyhow::Result<ExitCode> {
    match command {
        ConfigCommand::Init(arguments) => config::init::run(&arguments),
        ConfigCommand::Get(arguments) => config::get::run(arguments).await,
        ConfigCommand::Set(arguments) => config::set::run(arguments).await,
        ConfigCommand::Enable(arguments) => config::switch::run(arguments, true).await,
        ConfigCommand::Disable(arguments) => config::switch::run(arguments, false).await,
        ConfigCommand::Add(arguments) => config::add::run(arguments).await,
        ConfigCommand::Remove(arguments) => config::remove::run(arguments).await,
        ConfigCommand::Reset(arguments) => config::reset::run(arguments).await,
        ConfigCommand::History(arguments) => config::history::run(arguments).await,
        ConfigCommand::Rollback(arguments) => config::rollback::run(arguments).await,
        ConfigCommand::Diff(arguments) => config::diff::run(arguments).await,
        ConfigCommand::Schema(arguments) => config::schema::run(&arguments),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    let reader_left = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    };
    // `caribou tools list | head -1` is no failure.
    if error.chain().any(reader_left) {
        return ExitCode::SUCCESS;
    }
    // Nobody can be told when stderr is gone too.
    let _ = writeln!(std::io::stderr(), "error: {error:#}");
    if error.is::<Usage>() { ExitCode::from(usage::EXIT) } else { ExitCode::FAILURE }
}
