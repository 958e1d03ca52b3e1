//! Reading, cancelling and answering (contract 2.3, 6.10).

use caribou_core::failure::Code;
use caribou_core::ids::Scope;
use caribou_core::task::Status;
use caribou_ports::store::TaskFilter;

use super::{Does, Scripted, Tasking, ann, until};
use crate::fake::{anybody, raw};

#[tokio::test(start_paused = true)]
async fn a_task_is_seen_in_its_thread_by_its_user_only() {
    // Contract 2.3; invariant P1.
    let tasking = Tasking::new(Scripted::new(Does::Accept("one".to_owned()))).await;
    let told = tasking.submit().await.unwrap();
    let id = told["structuredContent"]["task_id"].as_str().unwrap().to_owned();
    let runtime = &tasking.setting.runtime;
    assert_eq!(runtime.list_tasks(&anybody(), &ann(), 50).await.unwrap().len(), 1);
    assert_eq!(runtime.read_task(&anybody(), &ann(), &id).await.unwrap().task_name, "report");
    for other in [Scope::new(Some("bob"), Some("t")), Scope::new(Some("ann"), Some("u"))] {
        let error = runtime.read_task(&anybody(), &other, &id).await.unwrap_err();
        assert_eq!((error.code, error.detail.as_str()), (Code::NotFound, "MCP task not found"));
        assert_eq!(runtime.cancel_task(&anybody(), &other, &id).await.unwrap_err().code, Code::NotFound);
    }
    let of_another = runtime.list_tasks(&anybody(), &Scope::new(Some("bob"), Some("t")), 50).await;
    assert_eq!(of_another.unwrap_err().code, Code::NotFound, "the thread is ann's");
    let unknown = runtime.list_tasks(&anybody(), &Scope::new(Some("bob"), Some("new")), 50).await.unwrap();
    assert!(unknown.is_empty(), "a thread that nobody has is empty");
    let all = runtime.list_all_tasks(&anybody(), TaskFilter::default(), None, 50).await.unwrap();
    assert_eq!(all.len(), 1);
    let events = runtime.task_events(&anybody(), &ann(), &id, 0, 10).await.unwrap();
    assert_eq!((events[0].seq, events[0].status), (1, Status::Submitted));
}

#[tokio::test(start_paused = true)]
async fn a_request_to_cancel_is_stored_and_answered_without_a_call_of_the_remote() {
    // Contract 6.10, request.
    let tasking = Tasking::new(Scripted::new(Does::Accept("one".to_owned()))).await;
    let told = tasking.submit().await.unwrap();
    let id = told["structuredContent"]["task_id"].as_str().unwrap().to_owned();
    let runtime = &tasking.setting.runtime;
    let asked = runtime.cancel_task(&anybody(), &ann(), &id).await.unwrap();
    assert!(asked.is_cancel_requested && !asked.snapshot.status.is_terminal());
    assert!(tasking.driver.cancelled.lock().unwrap().is_empty());
    let again = runtime.cancel_task(&anybody(), &ann(), &id).await.unwrap();
    assert!(again.is_cancel_requested);
    until("the cancellation", async || tasking.stored().await[0].snapshot.status == Status::Cancelled).await;
    assert_eq!(*tasking.driver.cancelled.lock().unwrap(), ["one"]);
    let ended = runtime.cancel_task(&anybody(), &ann(), &id).await.unwrap();
    assert_eq!(ended.snapshot.status, Status::Cancelled, "an ended task is answered unchanged");
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_task_that_asks_nothing_is_a_conflict() {
    let tasking = Tasking::new(Scripted::new(Does::Accept("one".to_owned()))).await;
    let told = tasking.submit().await.unwrap();
    let id = told["structuredContent"]["task_id"].as_str().unwrap().to_owned();
    let runtime = &tasking.setting.runtime;
    let answered = runtime.answer_task(&anybody(), &ann(), &id, "a", &raw("{}")).await;
    assert_eq!(answered.unwrap_err().code, Code::Conflict);
    let unknown = runtime.answer_task(&anybody(), &ann(), "mcp-task-1", "a", &raw("{}")).await;
    assert_eq!(unknown.unwrap_err().code, Code::NotFound);
}
