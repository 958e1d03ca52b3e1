//! The OpenAPI document: what is said once for all routes.
//!
//! Paths and bodies are described where they are written; here stand the title and the failures that routes share.

use std::collections::BTreeMap;

use utoipa::openapi::response::{Response, ResponseBuilder, ResponsesBuilder};
use utoipa::openapi::{ContentBuilder, Ref, RefOr};
use utoipa::{IntoResponses, OpenApi};

use crate::problem::ProblemBody;
use crate::router::documented_routes;

/// The document of this version of Caribou.
pub fn document() -> utoipa::openapi::OpenApi {
    documented_routes().into_openapi()
}

/// The parts that no route owns.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Caribou",
        description = "Runs MCP servers for many users and conversations. Every answer names its request in \
            `X-Request-Id`; a request may bring its own (up to 128 visible ASCII characters). Every failure has the \
            body `Problem`.",
    ),
    paths(crate::routes::config::remove::remove_server),
    components(schemas(ProblemBody<'static>)),
)]
pub(crate) struct Document;

/// Failures of reading a body.
pub(crate) struct BodyProblems;

impl IntoResponses for BodyProblems {
    fn responses() -> Meanings {
        problems(&[
            ("400", "The body is not JSON, or broke off"),
            ("408", "`timeout`: the body did not arrive in time; nothing was done"),
            ("413", "The body is too large"),
            ("415", "The body is not declared as JSON"),
            ("422", "`invalid`: a member is missing or has the wrong type or form"),
        ])
    }
}

/// Failures of reading parameters.
pub(crate) struct ParameterProblems;

impl IntoResponses for ParameterProblems {
    fn responses() -> Meanings {
        problems(&[("422", "`invalid`: a parameter is unknown, repeated or has the wrong form")])
    }
}

/// Failures of a tool call.
pub(crate) struct CallProblems;

impl IntoResponses for CallProblems {
    fn responses() -> Meanings {
        problems(&[
            ("403", "`denied`: the caller, or the credential used upstream, may not"),
            ("404", "`not_found`: no tool has this name"),
            ("409", "`conflict` or `config_changed`: what the call was made under no longer holds"),
            ("500", FAULT),
            (
                "502",
                "`outcome_unknown`: the call may have had effects; `session_ended`: it has not; `upstream_error`: the \
                 server answered with an error, see `upstream`, or with something that is not MCP",
            ),
            ("503", "`busy` or `unavailable`: nothing was done; `Retry-After`, if given, says when to try again"),
            ("504", "`timeout`: the call was cancelled at its bound and may have had effects"),
        ])
    }
}

/// Failures of a verb that asks servers what they have.
pub(crate) struct DiscoveryProblems;

impl IntoResponses for DiscoveryProblems {
    fn responses() -> Meanings {
        problems(&[
            ("403", "`denied`: no server accepted its credential"),
            ("500", FAULT),
            ("502", "`upstream_error`: no server answered with something usable"),
            ("503", "`busy` or `unavailable`: no server can be reached"),
            ("504", "`timeout`: no server answered in time"),
        ])
    }
}

/// Failures of a reset.
pub(crate) struct ResetProblems;

impl IntoResponses for ResetProblems {
    fn responses() -> Meanings {
        problems(&[
            ("500", FAULT),
            ("503", "`unavailable`: this replica follows no configuration"),
            ("504", "`timeout`: it was begun, and goes on"),
        ])
    }
}

/// The failure that every route shares.
pub(crate) struct FaultProblem;

impl IntoResponses for FaultProblem {
    fn responses() -> Meanings {
        problems(&[("500", FAULT)])
    }
}

const FAULT: &str = "A fault of Caribou; its log says more under the same request id";

/// Responses by status.
pub(crate) type Meanings = BTreeMap<String, RefOr<Response>>;

/// A response with the one body of all failures for each of these statuses.
pub(crate) fn problems(meanings: &[(&str, &str)]) -> Meanings {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    let response = |meaning: &str| {
        ResponseBuilder::new().description(meaning).content("application/json", content.clone()).build()
    };
    let responses = meanings.iter().map(|(status, meaning)| (*status, response(meaning)));
    ResponsesBuilder::new().responses_from_iter(responses).build().into()
}
