//! OAuth scopes that servers and tools require of a caller's token, by every door (RFC 6750 §3.1; mcp.md 10.1, S22).

use caribou_proto::v1;
use caribou_proto::v1::tool_service_client::ToolServiceClient;
use caribou_tests::{Answer, Caribou, Setup, StdioFake};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tonic::Request;

use super::client::{Session, modern, post, request};
use super::identity::key_of;
use crate::identity::Issuer;

const PLACE: &str = "https://caribou.example/.well-known/oauth-protected-resource";

/// Far in the future.
const EXPIRY: u64 = 4_102_444_800;

/// A server of notes, whose tools but one require a scope, and a server that requires none.
fn servers(setup: Setup) -> Setup {
    let info = json!({ "name": "fake", "version": "0" });
    let capabilities = json!({ "tools": {}, "prompts": {} });
    let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info });
    let script = json!({
        "on": {
            "initialize": [{ "result": greeting }],
            "prompts/list": [{ "result": { "prompts": [{ "name": "sum" }] } }],
            "prompts/get": [{ "result": { "messages": [] } }],
        },
        "calls": { "find": ["default"], "write": ["default"], "ping": ["default"] },
    });
    let notes = StdioFake::new(setup.home(), "notes", script);
    let open = StdioFake::new(setup.home(), "open", json!({ "calls": { "echo": ["default"] } }));
    let tools =
        json!({ "write": { "required_scopes": ["notes:read", "notes:write"] }, "ping": { "required_scopes": [] } });
    let entry = notes.entry_with(json!({ "required_scopes": ["notes:read"], "tools": tools }));
    setup.server("notes", entry).server("open", open.entry())
}

/// With tokens of an issuer, which it is told of.
fn with_tokens(issuer: &Issuer) -> Setup {
    let setup = Setup::new().settings(
        "auth:\n  mode: jwt\n  jwt: {jwks_file: keys.json, issuer: 'https://issuer.example', audience: [caribou]}\n\
         mcp_endpoint: {public_url: 'https://caribou.example/'}\n",
    );
    setup.home().write("keys.json", &issuer.key_set());
    servers(setup.variable("CARIBOU_GRPC_LISTEN", "127.0.0.1:0"))
}

/// A token of ann's with these claims besides.
fn token(issuer: &Issuer, more: Value) -> String {
    let mut claims = json!({ "iss": "https://issuer.example", "aud": "caribou", "sub": "ann", "exp": EXPIRY });
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    issuer.token(&claims)
}

fn bearing(request: RequestBuilder, token: &str) -> RequestBuilder {
    request.header("authorization", format!("Bearer {token}"))
}

/// Status, challenge and body.
async fn told(request: RequestBuilder) -> (u16, String, Answer) {
    let response = request.send().await.unwrap();
    let challenge = response.headers().get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
    (response.status().as_u16(), challenge.unwrap_or_default(), Answer::read(response).await)
}

/// The challenge to a client at this path whose token must hold these.
fn challenge(scopes: &str, path: &str) -> String {
    format!("Bearer error=\"insufficient_scope\", scope=\"{scopes}\", resource_metadata=\"{PLACE}{path}\"")
}

#[tokio::test]
async fn a_modern_client_is_told_all_scopes_that_a_use_requires_and_may_come_back_with_them() {
    let issuer = Issuer::new("one", 7);
    let caribou = with_tokens(&issuer).start().await;
    let (none, reader) = (token(&issuer, json!({})), token(&issuer, json!({ "scope": "openid notes:read" })));
    let writer = token(&issuer, json!({ "scp": ["notes:write", "notes:read"] }));
    let ask = |token: &str, path: &str, method: &str, name: &str| {
        bearing(modern(&caribou, path, method, json!({ "name": name })), token)
    };
    for (path, prefix) in [("/mcp", "notes_"), ("/mcp/notes", "")] {
        let use_of = async |token: &str, method: &str, name: &str| {
            told(ask(token, path, method, &format!("{prefix}{name}"))).await
        };
        for (token, method, name, scopes) in [
            (&none, "tools/call", "find", "notes:read"),
            (&none, "tools/call", "write", "notes:read notes:write"),
            (&reader, "tools/call", "write", "notes:read notes:write"),
            (&none, "prompts/get", "sum", "notes:read"),
        ] {
            let (status, said, answer) = use_of(token, method, name).await;
            assert_eq!((status, said), (403, challenge(scopes, path)), "{path} {name}: {answer:?}");
            let error = answer.json()["error"].clone();
            let required: Vec<&str> = scopes.split(' ').collect();
            assert_eq!(error["data"], json!({ "code": "denied", "required_scopes": required }), "{error}");
            assert_eq!(answer.json()["id"], 7);
        }
        for (token, method, name) in [
            (&none, "tools/call", "ping"),
            (&reader, "tools/call", "find"),
            (&writer, "tools/call", "write"),
            (&reader, "prompts/get", "sum"),
        ] {
            let (status, said, answer) = use_of(token, method, name).await;
            assert_eq!((status, &*said), (200, ""), "{path} {name}: {answer:?}");
            assert_ne!(answer.json()["result"]["isError"], true, "{answer:?}");
        }
        // What a client could ask a token for is shown to it.
        let listed = caribou.send(bearing(modern(&caribou, path, "tools/list", json!({})), &none)).await.json();
        let names: Vec<_> = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert!(names.contains(&&json!(format!("{prefix}write"))), "{names:?}");
    }
    assert_eq!(told(ask(&none, "/mcp", "tools/call", "open_echo")).await.0, 200);
}

#[tokio::test]
async fn a_legacy_client_is_told_by_status_too_and_its_session_takes_another_token() {
    let issuer = Issuer::new("one", 7);
    let caribou = with_tokens(&issuer).start().await;
    let none = token(&issuer, json!({}));
    let mut session = Session::open_with(&caribou, "/mcp/notes", Some(&none)).await;
    let call = |session: &Session<'_>| {
        session.with(post(&caribou, "/mcp/notes", request(7, "tools/call", &json!({ "name": "find" }))))
    };
    let (status, said, answer) = told(call(&session)).await;
    assert_eq!((status, said), (403, challenge("notes:read", "/mcp/notes")), "{answer:?}");
    session.key = Some(token(&issuer, json!({ "scope": "notes:read" })));
    let (status, _, answer) = told(call(&session)).await;
    assert_eq!(status, 200, "{answer:?}");
    assert!(answer.body.contains("\"result\""), "{answer:?}");
}

#[tokio::test]
async fn what_there_is_to_ask_an_issuer_for_stands_in_the_metadata() {
    // RFC 9728 §2, scopes_supported.
    let caribou = with_tokens(&Issuer::new("one", 7)).start().await;
    let scopes = async |path: &str| {
        let metadata = caribou.get(&format!("/.well-known/oauth-protected-resource{path}")).await.json();
        metadata.get("scopes_supported").cloned()
    };
    let all = Some(json!(["notes:read", "notes:write"]));
    assert_eq!([scopes("").await, scopes("/mcp").await, scopes("/mcp/notes").await], [all.clone(), all.clone(), all]);
    assert_eq!([scopes("/mcp/open").await, scopes("/mcp/nothing").await], [None, None]);
}

#[tokio::test]
async fn rest_and_grpc_refuse_with_the_same_names() {
    let issuer = Issuer::new("one", 7);
    let caribou = with_tokens(&issuer).start().await;
    let (none, reader) = (token(&issuer, json!({})), token(&issuer, json!({ "scope": "notes:read" })));
    let over_rest = |token: &str, name: &str| {
        let call = caribou.request("POST", "/api/mcp/tools/call").json(&json!({ "name": name, "arguments": {} }));
        bearing(call, token)
    };
    let (status, said, answer) = told(over_rest(&none, "notes_write")).await;
    let expected = r#"Bearer error="insufficient_scope", scope="notes:read notes:write""#;
    assert_eq!((status, &*said, &*answer.code()), (403, expected, "denied"), "{answer:?}");
    assert_eq!(answer.json()["required_scopes"], json!(["notes:read", "notes:write"]));
    assert!(answer.detail().contains("`notes:read notes:write`"), "{answer:?}");
    assert_eq!(told(over_rest(&reader, "notes_find")).await.0, 200);
    over_grpc(&caribou, &none, &reader).await;
}

async fn over_grpc(caribou: &Caribou, none: &str, reader: &str) {
    let mut tools = ToolServiceClient::connect(caribou.grpc_url().await.replacen("grpc", "http", 1)).await.unwrap();
    let call = |token: &str| {
        let mut call = Request::new(v1::CallToolRequest { name: "notes_find".to_owned(), ..Default::default() });
        call.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        call
    };
    let refused = tools.call_tool(call(none)).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::PermissionDenied, "{refused:?}");
    let told = |name: &str| refused.metadata().get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!((told("caribou-code"), told("caribou-required-scopes")), ("denied".to_owned(), "notes:read".to_owned()));
    tools.call_tool(call(reader)).await.unwrap();
}

#[tokio::test]
async fn a_key_has_no_scopes_and_doctor_says_so() {
    let setup = servers(Setup::new().variable("CARIBOU_AUTH_MODE", "api_keys"));
    let ann = key_of(&setup, &["--user", "ann"]).await;
    let looked = setup.command(&["doctor", "--offline", "--json"]).output().await.unwrap();
    let found: Value = serde_json::from_slice(&looked.stdout).unwrap();
    let mut of_notes = found["checks"].as_array().unwrap().iter().filter(|line| line["subject"] == "notes");
    let warning = of_notes.next().unwrap_or_else(|| panic!("nothing is said of notes: {found}"));
    assert_eq!(warning["state"], "warning", "{warning}");
    assert!(warning["what"].as_str().unwrap().contains("`required_scopes` keep nobody out"), "{warning}");
    let caribou = setup.start().await;
    let call = modern(&caribou, "/mcp", "tools/call", json!({ "name": "notes_write" }));
    assert_eq!(told(bearing(call, &ann)).await.0, 200);
}

#[tokio::test]
async fn a_malformed_scope_opens_nothing_and_is_told_with_its_place() {
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "notes", json!({ "calls": { "find": ["default"] } }));
    let setup = setup.server("notes", fake.entry_with(json!({ "required_scopes": ["notes:read notes:write"] })));
    let checked = setup.command(&["check"]).output().await.unwrap();
    let said = String::from_utf8_lossy(&[checked.stdout, checked.stderr].concat()).into_owned();
    assert!(!checked.status.success(), "{said}");
    assert!(said.contains("$.mcpServers.notes.required_scopes[0]: must be one OAuth scope"), "{said}");
    assert!(said.contains("write several as several texts"), "{said}");
    let caribou = setup.start().await;
    assert_eq!(caribou.tool_names().await, [""; 0]);
}
