//! Puts the routes together, with what they share.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use caribou_core::failure::Code;
use caribou_runtime::Runtime;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::console;
use crate::envelope::envelope;
use crate::openapi::{Document, ask_for_callers};
use crate::options::RestOptions;
use crate::problem::Problem;
use crate::routes::{
    audit, cache, config, connections, features, health, me, metrics, oauth, openapi, prompt_section, replicas,
    servers, sessions, tasks, threads, tools,
};

/// What every route may use.
pub(crate) struct Replica {
    pub(crate) runtime: Runtime,
    pub(crate) options: RestOptions,
    pub(crate) document: utoipa::openapi::OpenApi,
    /// Who looks for the pages of the console.
    pub(crate) watch: console::Watch,
}

/// All routes over the verbs of `runtime`.
pub fn router(runtime: Runtime, mut options: RestOptions) -> Router {
    let (routes, document) = documented_routes().split_for_parts();
    let beside = std::mem::take(&mut options.beside);
    let replica = Arc::new(Replica { runtime, options, document, watch: console::Watch::new() });
    routes
        .merge(console::routes())
        .merge(beside.with_state(()))
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(replica.clone(), envelope))
        .with_state(replica)
}

/// The routes, each with its entry in the document.
pub(crate) fn documented_routes() -> OpenApiRouter<Arc<Replica>> {
    let mut routes = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(tools::list::list_tools))
        .routes(routes!(tools::call::call_tool))
        .routes(routes!(tools::refresh::refresh_tools))
        .routes(routes!(tools::search::search_tools))
        .routes(routes!(tools::promote::promote_tools))
        .routes(routes!(prompt_section::read::read_prompt_section))
        .routes(routes!(
            config::read::read_config,
            config::replace_all::replace_config,
            config::set_enabled::switch_server
        ))
        .routes(routes!(config::replace_one::replace_server))
        .routes(routes!(config::add::add_servers))
        .route(config::remove::PATH, axum::routing::delete(config::remove::remove_server))
        .routes(routes!(config::history::config_history))
        .routes(routes!(config::history::config_revision))
        .routes(routes!(config::roll_back::roll_back))
        .routes(routes!(cache::reset::reset_cache))
        .routes(routes!(servers::list::list_servers))
        .routes(routes!(sessions::list::list_sessions))
        .routes(routes!(threads::close_sessions::close_sessions))
        .routes(routes!(connections::list::list_connections))
        .routes(routes!(
            connections::read::read_connection,
            connections::put::put_connection,
            connections::delete::delete_connection
        ))
        .routes(routes!(tasks::list::list_tasks))
        .routes(routes!(tasks::read::read_task))
        .routes(routes!(tasks::cancel::cancel_task))
        .routes(routes!(tasks::input::answer_task))
        .routes(routes!(tasks::events::task_events))
        .routes(routes!(tasks::list_all::list_all_tasks))
        .routes(routes!(tasks::redeliver::redeliver))
        .routes(routes!(features::read::read_features))
        .routes(routes!(me::read::read_me))
        .routes(routes!(console::console_events))
        .routes(routes!(audit::read::read_audit))
        .routes(routes!(oauth::list::list_chains))
        .routes(routes!(oauth::refresh::refresh_chain))
        .routes(routes!(oauth::forget::forget_chain))
        .routes(routes!(replicas::list::list_replicas))
        .routes(routes!(health::live::live))
        .routes(routes!(health::ready::ready))
        .routes(routes!(metrics::read::read_metrics))
        .routes(routes!(openapi::read::read_document));
    ask_for_callers(routes.get_openapi_mut());
    routes
}

async fn unknown_route() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, Code::NotFound, "there is no such route; GET /openapi.json lists all")
}

async fn wrong_method() -> Problem {
    let detail = "this route does not take that method; the header `Allow` lists those it takes";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, Code::Invalid, detail)
}
