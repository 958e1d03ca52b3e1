//! The OpenAPI document: what is said once for all routes.
//!
//! Paths and bodies are described where they are written; here stand the title and the failures that routes share.

use std::collections::BTreeMap;

use utoipa::openapi::path::PathItem;
use utoipa::openapi::response::{Response, ResponseBuilder, ResponsesBuilder};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr};
use utoipa::{IntoResponses, OpenApi};

use crate::identity::OPEN;
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

/// Says of every route but the open ones that it asks for its caller, and what it answers to one that it does not know.
pub(crate) fn ask_for_callers(document: &mut utoipa::openapi::OpenApi) {
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(
        "An API key (`caribou keys create`) or a token of the issuer, whichever `auth.mode` says. While that is \
         `disabled`, nothing is asked for.",
    ));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(BEARER, SecurityScheme::Http(scheme.build()));
    document.security = Some(vec![SecurityRequirement::new(BEARER, NO_SCOPES)]);
    for (path, item) in &mut document.paths.paths {
        let PathItem { get, put, post, delete, patch, .. } = item;
        for operation in [get, put, post, delete, patch].into_iter().flatten() {
            if OPEN.contains(&path.as_str()) {
                operation.security = Some(Vec::new());
            } else {
                operation.responses.responses.extend(StrangerProblems::responses());
            }
        }
    }
}

/// The name of the one way to say who calls.
const BEARER: &str = "bearer";

const NO_SCOPES: [&str; 0] = [];

/// Failures of telling who calls.
struct StrangerProblems;

impl IntoResponses for StrangerProblems {
    fn responses() -> Meanings {
        problems(&[
            ("401", "`denied`: no credential, or one that is nobody's; `WWW-Authenticate` says which"),
            ("429", "`busy`: this caller asks too often; `Retry-After` says when to try again"),
        ])
    }
}

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
            ("502", "`outcome_unknown`: whether it is on record for all replicas is not known; if so, all do it"),
            (
                "503",
                "`unavailable`: this replica follows no configuration, or the database cannot be asked; nothing is done",
            ),
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
