//! The demo MCP server, over stdio. One process serves one session, so its counter is that session's state.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResult, ContentBlock, ProgressNotificationParam, RequestMetaObject, ServerCapabilities, ServerConfig,
};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::reports::Reports;

/// The largest text `files` writes: a demo must not fill a disk.
const MAX_FILE_BYTES: usize = 64 * 1024;

/// How many steps `slow` can take, and how long one.
const MAX_STEPS: u32 = 100;
const MAX_STEP: Duration = Duration::from_secs(5);

/// Serves until stdin ends.
pub(crate) fn run() -> ExitCode {
    let served = tokio::runtime::Builder::new_current_thread().enable_all().build().map(|runtime| {
        runtime.block_on(async {
            let service = Demo::new().serve(rmcp::transport::stdio()).await.map_err(|error| error.to_string())?;
            service.waiting().await.map_err(|error| error.to_string())
        })
    });
    match served {
        Ok(Ok(_)) => ExitCode::SUCCESS,
        Ok(Err(error)) => failed(&error),
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(error: &str) -> ExitCode {
    eprintln!("demo server: {error}");
    ExitCode::FAILURE
}

struct Demo {
    tool_router: ToolRouter<Self>,
    count: AtomicU64,
    reports: Mutex<Reports>,
}

/// Arguments of `echo`.
#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to send back.
    message: String,
}

/// Arguments of `add`.
#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

/// Arguments of `slow`.
#[derive(Deserialize, JsonSchema)]
struct Slow {
    /// How many steps to take, at most 100.
    #[serde(default = "five")]
    steps: u32,
    /// How long a step takes, at most 5000.
    #[serde(default = "two_hundred")]
    step_ms: u64,
}

fn five() -> u32 {
    5
}

fn two_hundred() -> u64 {
    200
}

/// Arguments of `fail`.
#[derive(Deserialize, JsonSchema)]
struct Fail {
    /// What the error says.
    #[serde(default = "as_asked")]
    message: String,
}

fn as_asked() -> String {
    "failed, as asked".to_owned()
}

/// Arguments of `files`.
#[derive(Deserialize, JsonSchema)]
struct Files {
    /// Name of the file, without folders.
    name: String,
    /// What to write into it.
    text: String,
}

/// Arguments of `report_submit`.
#[derive(Deserialize, JsonSchema)]
struct Topic {
    /// What the report is about.
    topic: String,
}

/// Arguments of `report_status` and `report_cancel`.
#[derive(Deserialize, JsonSchema)]
struct Which {
    /// The report.
    task_id: String,
}

/// Arguments of `report_input`.
#[derive(Deserialize, JsonSchema)]
struct Answered {
    /// The report.
    task_id: String,
    /// What was asked for.
    response: Chosen,
}

/// The answer to the question of a report.
#[derive(Deserialize, JsonSchema)]
struct Chosen {
    /// The format: text or table.
    format: String,
}

#[tool_router]
impl Demo {
    fn new() -> Self {
        Self { tool_router: Self::tool_router(), count: AtomicU64::new(0), reports: Mutex::default() }
    }

    fn reports(&self) -> MutexGuard<'_, Reports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[tool(description = "Sends the message back.")]
    async fn echo(&self, Parameters(Echo { message }): Parameters<Echo>) -> String {
        message
    }

    #[tool(description = "Adds two numbers.")]
    async fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        (a + b).to_string()
    }

    #[tool(description = "Counts its calls. The count belongs to the session: each thread has its own.")]
    async fn counter(&self) -> String {
        (self.count.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }

    #[tool(description = "Takes its time and reports progress at every step.")]
    async fn slow(
        &self,
        Parameters(Slow { steps, step_ms }): Parameters<Slow>,
        meta: RequestMetaObject,
        caller: Peer<RoleServer>,
    ) -> String {
        let steps = steps.min(MAX_STEPS);
        let step = Duration::from_millis(step_ms).min(MAX_STEP);
        let token = meta.get_progress_token();
        for done in 1..=steps {
            tokio::time::sleep(step).await;
            if let Some(token) = token.clone() {
                let progress = ProgressNotificationParam::new(token, f64::from(done))
                    .with_total(f64::from(steps))
                    .with_message(format!("step {done} of {steps}"));
                // A caller that no longer listens is no reason to stop.
                let _ = caller.notify_progress(progress).await;
            }
        }
        format!("{steps} steps done")
    }

    #[tool(description = "Fails, as tools do: with a result that says so.")]
    async fn fail(&self, Parameters(Fail { message }): Parameters<Fail>) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(message)])
    }

    #[tool(description = "Writes a text file into the server's working directory and lists what is there.")]
    async fn files(&self, Parameters(Files { name, text }): Parameters<Files>) -> Result<String, ErrorData> {
        let plain = Path::new(&name).file_name().is_some_and(|file_name| file_name == name.as_str());
        if !plain || text.len() > MAX_FILE_BYTES {
            return Err(ErrorData::invalid_params("a plain file name and at most 64 KiB of text, please", None));
        }
        write_and_list(&name, &text).await.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    #[tool(description = "Writes a report. It takes a while and asks one question in the middle.")]
    async fn report_submit(&self, Parameters(Topic { topic }): Parameters<Topic>) -> CallToolResult {
        let begun = self.reports().submit(topic, Instant::now());
        begun.map_or_else(
            || CallToolResult::error(vec![ContentBlock::text("there are too many reports; end this session")]),
            CallToolResult::structured,
        )
    }

    #[tool(description = "Tells how a report is.")]
    async fn report_status(&self, Parameters(Which { task_id }): Parameters<Which>) -> CallToolResult {
        CallToolResult::structured(self.reports().status(&task_id, Instant::now()))
    }

    #[tool(description = "Gives up a report.")]
    async fn report_cancel(&self, Parameters(Which { task_id }): Parameters<Which>) -> CallToolResult {
        CallToolResult::structured(self.reports().cancel(&task_id, Instant::now()))
    }

    #[tool(description = "Answers the question of a report.")]
    async fn report_input(
        &self,
        Parameters(Answered { task_id, response }): Parameters<Answered>,
    ) -> Result<CallToolResult, ErrorData> {
        let is_known = self.reports().answer(&task_id, &response.format, Instant::now());
        let taken = || CallToolResult::structured(serde_json::json!({ "task_id": task_id }));
        is_known.then(taken).ok_or_else(|| ErrorData::invalid_params("there is no such report", None))
    }
}

async fn write_and_list(name: &str, text: &str) -> std::io::Result<String> {
    tokio::fs::write(name, text).await?;
    let mut names = Vec::new();
    let mut folder = tokio::fs::read_dir(".").await?;
    while let Some(entry) = folder.next_entry().await? {
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names.join("\n"))
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Demo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}
