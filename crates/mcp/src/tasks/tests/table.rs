//! The table of contract 6.7, once for all three drivers: what each kind of answer means to a submit, a status and a
//! cancel, by the tools of a toolset as the contract says, and by the tasks of both eras as mcp.md §9 has it.
//!
//! A row holds answers of one kind. A cell without answers is a dash of the contract, or an answer that there cannot be
//! by that driver.

use caribou_core::failure::Class;
use caribou_core::task::parse::Misread;
use caribou_core::task::{Report, Status, TaskLimits};
use caribou_ports::store::SubmitKey;
use caribou_ports::task_driver::{DriverError, SubmitTask, Submitted, TaskDriver};

use super::rows::rows;
use super::upstream::{Says, Script, handle, local};
use crate::tasks::{LegacyTasks, ModernTasks, OrdinaryTools};

/// What comes of an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Means {
    /// A task by this name.
    Task(&'static str),
    /// An ordinary result.
    Answered,
    /// This state, and the error that is stored with it.
    State(Status, Option<&'static str>),
    /// A failure that is tried again by a poll and a cancel, with these words in it.
    Retried(&'static str),
    /// A breach of the contract: the end of a task that is polled, and tried again by a cancel.
    Breach(&'static str),
    /// A JSON-RPC error, which may pass.
    Refused(&'static str),
    /// What only an operator can mend.
    Unsupported(&'static str),
    /// Nobody can tell whether it had an effect.
    Unknown(&'static str),
}

use Means::{Answered, Breach, Refused, Retried, State, Task, Unknown, Unsupported};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Duty {
    Submit,
    Status,
    Cancel,
}

use Duty::{Cancel, Submit};

/// What a server says, one answer for each time it is asked, and what that means.
pub(super) type Cell = (Duty, Vec<Says>, Means);

/// Answers of one kind: by tools, by tasks of revision 2025-11-25, by tasks of the modern era.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) tools: Vec<Cell>,
    pub(super) legacy: Vec<Cell>,
    pub(super) modern: Vec<Cell>,
}

fn limits() -> TaskLimits {
    TaskLimits { max_status_bytes: 1_000, ..TaskLimits::default() }
}

/// Whether a failure is the one that is meant.
fn is_as(failed: &DriverError, means: &Means) -> bool {
    let (class, words) = match means {
        Retried(words) => (Class::Retry, words),
        Breach(words) | Refused(words) => (Class::Invalid, words),
        Unsupported(words) => (Class::NotFound, words),
        Unknown(words) => (Class::Unknown, words),
        Task(_) | Answered | State(..) => return false,
    };
    let is_of_kind = match means {
        Breach(_) => matches!(failed, DriverError::Misread(Misread::Protocol(_))),
        Refused(_) => matches!(failed, DriverError::Remote(_)),
        _ => true,
    };
    is_of_kind && failed.class() == class && failed.to_string().contains(words)
}

/// Whether the driver takes it as it is meant; else what it took it for.
async fn holds(driver: &dyn TaskDriver, (duty, says, means): Cell) -> Result<(), String> {
    let script = Script::new(says);
    let (is_meant, brought) = match duty {
        Submit => submitted(driver, &script, &means).await,
        Duty::Status => told(driver.status(&script, handle()).await, &means),
        Cancel => told(driver.cancel(&script, handle()).await, &means),
    };
    // Nothing is asked twice, and nothing less than was expected.
    script.seen();
    if is_meant { Ok(()) } else { Err(format!("{duty:?} should mean {means:?}, and brought {brought}")) }
}

async fn submitted(driver: &dyn TaskDriver, script: &Script, means: &Means) -> (bool, String) {
    let submit = SubmitTask { task: local(), submit_key: SubmitKey([1; 16]), task_name: "report", arguments: None };
    let submitted = driver.submit(script, submit).await;
    let is_meant = match &submitted {
        Ok(Submitted::Task(task)) => {
            assert!(!task.driver_data.contains(&task.remote_id), "contract 6.6: no name of it in the data");
            matches!(means, Task(name) if *name == task.remote_id)
        }
        Ok(Submitted::Answered(_)) => *means == Answered,
        Err(failed) => is_as(failed, means),
    };
    (is_meant, format!("{submitted:?}"))
}

fn told(told: Result<Report, DriverError>, means: &Means) -> (bool, String) {
    let is_meant = match &told {
        Ok(report) => {
            assert_eq!(report.input_required.is_some(), report.status == Status::InputRequired, "{report:?}");
            matches!(means, State(status, why) if *status == report.status && *why == report.error.as_deref())
        }
        Err(failed) => is_as(failed, means),
    };
    (is_meant, format!("{told:?}"))
}

#[tokio::test]
async fn each_kind_of_answer_means_what_the_table_says_to_every_driver() {
    // Contract 6.7; mcp.md §9.1, §9.2 and §14.5.
    let (tools, legacy, modern) =
        (OrdinaryTools::new(limits()), LegacyTasks::new(limits()), ModernTasks::new(limits()));
    let (mut cells, mut wrong) = (0, Vec::new());
    for row in rows() {
        let drivers: [(&dyn TaskDriver, Vec<Cell>); 3] =
            [(&tools, row.tools), (&legacy, row.legacy), (&modern, row.modern)];
        for (driver, row_cells) in drivers {
            for cell in row_cells {
                cells += 1;
                let held = holds(driver, cell).await;
                wrong.extend(held.err().map(|why| format!("{}, {}: {why}", row.name, driver.name())));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {cells} cells:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cells > 130, "a part of the table is missing: {cells} cells");
}

#[tokio::test]
async fn a_toolset_that_is_gone_is_told_without_asking() {
    let ordinary = OrdinaryTools::new(limits());
    let script = Script::new([]);
    let gone = ordinary.status(&script, caribou_ports::task_driver::TaskHandle { task_name: "old", ..handle() }).await;
    assert!(matches!(&gone, Err(error @ DriverError::NotSupported(_)) if error.class() == Class::NotFound), "{gone:?}");
    assert!(script.seen().is_empty());
}
