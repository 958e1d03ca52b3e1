//! `caribou tasks list`: the tasks of one thread, or those of everybody for admins.

use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use url::form_urlencoded::Serializer;

use super::named::{Task, Whose, demand_replica};
use crate::commands::arguments::Target;
use crate::commands::gateway::Gateway;
use crate::commands::output;

#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    whose: Whose,
    /// Those of all users and threads; for admins
    #[arg(long, conflicts_with_all = ["user", "thread"])]
    all: bool,
    /// With --all: only those of this MCP server
    #[arg(long, value_name = "NAME", requires = "all")]
    from: Option<String>,
    /// With --all: only those that go on
    #[arg(long, requires = "all")]
    active: bool,
    /// With --all: the next page
    #[arg(long, requires = "all")]
    cursor: Option<String>,
    /// The most tasks
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
    #[command(flatten)]
    target: Target,
}

/// The answer of `GET /api/mcp-tasks`.
#[derive(Deserialize)]
struct Page {
    tasks: Vec<Anybodys>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Anybodys {
    #[serde(flatten)]
    task: Task,
    user_id: String,
    thread_id: String,
    server: String,
}

pub(in crate::commands) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    demand_replica(&arguments.target)?;
    let answer = Gateway::once(&arguments.target, async |gateway| gateway.get(&arguments.path()).await).await?;
    let answer = String::from_utf8_lossy(&answer);
    if arguments.target.json {
        output::line(answer)?;
    } else if arguments.all {
        let Page { tasks, next } = serde_json::from_str(&answer)?;
        let headings = ["Task", "Name", "State", "User", "Thread", "Server", "Created"];
        output::table(headings, &tasks.into_iter().map(of_anybody).collect::<Vec<_>>())?;
        if let Some(next) = next {
            output::note(format_args!("there may be more: --cursor {next}"));
        }
    } else {
        let tasks: Vec<Task> = serde_json::from_str(&answer)?;
        let rows = tasks.into_iter().map(row).collect::<Vec<_>>();
        output::table(["Task", "Name", "State", "Created", "Changed", "Error"], &rows)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn path(&self) -> String {
        let limit = self.limit.to_string();
        if !self.all {
            return self.whose.path("", &[("limit", &limit)]);
        }
        let mut query = Serializer::new(String::new());
        query.append_pair("limit", &limit);
        let wanted = [("server", &self.from), ("cursor", &self.cursor)];
        for (name, value) in wanted.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            query.append_pair(name, value);
        }
        if self.active {
            query.append_pair("active", "true");
        }
        format!("/api/mcp-tasks?{}", query.finish())
    }
}

fn row(task: Task) -> [String; 6] {
    let state = task.state();
    let Task { task_id, task_name, created_at, updated_at, error, .. } = task;
    [task_id, task_name, state, created_at, updated_at, error.unwrap_or_default()]
}

fn of_anybody(Anybodys { task, user_id, thread_id, server }: Anybodys) -> [String; 7] {
    let state = task.state();
    [task.task_id, task.task_name, state, user_id, thread_id, server, task.created_at]
}
