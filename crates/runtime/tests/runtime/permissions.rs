//! What a caller may do, whatever door it came by, and how often it is let in.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use caribou_core::config::{Routing, RoutingMode, Secret, ToolOverride};
use caribou_core::failure::Code;
use caribou_core::identity::{HeldScopes, Principal, Rate, Roles, ToolRules};
use caribou_core::ids::{BootId, Scope, ServerName};
use caribou_ports::BoxFuture;
use caribou_ports::identity::{Authenticator, Unauthenticated};
use caribou_runtime::{CallTool, Caller, Door, NotAdmitted, Options, Outside, Runtime};

use crate::fake::{Fake, FakeConnector, anybody, call, server, start};

fn ann(tools: ToolRules) -> Caller {
    let principal = Principal {
        id: "key-1".into(),
        user: "ann".into(),
        roles: Roles { admin: false, agent: false },
        tools: Arc::new(tools),
        scopes: HeldScopes::All,
    };
    Caller { principal, ..Caller::local(Door::Rest) }
}

fn without(denied: &str) -> Caller {
    ann(ToolRules { allowed: None, denied: vec![denied.to_owned()] })
}

fn scope() -> Scope {
    Scope::new(Some("ann"), Some("t"))
}

async fn with_tools(tools: &[&str], options: Options) -> (Arc<Fake>, Runtime) {
    let fake = Arc::new(Fake {
        tools: std::sync::Mutex::new(tools.iter().map(|t| (*t).to_owned()).collect()),
        ..Fake::default()
    });
    let routed = server("s", |config| {
        config.routing = Routing { mode: RoutingMode::Prefer, priority: 5, keywords: vec!["orders".into()] };
    });
    let runtime = start(&fake, vec![routed], options).await;
    (fake, runtime)
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_a_caller_may_not_use_is_nowhere_for_it() {
    let (fake, runtime) = with_tools(&["a", "b"], Options { tool_search: true, ..Options::default() }).await;
    let caller = without("s_b");
    let listed = runtime.list_tools(&caller, &scope()).await.unwrap();
    assert_eq!(listed.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["s_a"]);
    assert_eq!(listed.deferred, [Arc::from("s_a")]);
    let all = runtime.list_tools(&anybody(), &scope()).await.unwrap();
    assert_eq!((all.tools.len(), all.deferred.len()), (2, 2));
    assert_eq!(all.catalog, listed.catalog, "one catalogue for all callers");

    let section = runtime.prompt_section(&caller).await.unwrap();
    assert!(section.contains("s_a") && !section.contains("s_b"), "{section}");
    let promoted = runtime.promote_tools(&caller, &scope(), "my orders").await.unwrap();
    assert_eq!(promoted.names, [Arc::from("s_a")]);
    let found = runtime.search_tools(&caller, &scope(), "select:s_a,s_b").await.unwrap();
    assert_eq!(found.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["s_a"]);

    let as_caller = |name: &str| CallTool { caller: caller.clone(), scope: scope(), ..call(name, "t") };
    let refused = runtime.call_tool(as_caller("s_b")).await.map(drop).unwrap_err();
    assert_eq!((refused.code, &*refused.detail), (Code::Denied, "this caller may not use tool `s_b`"));
    let unknown = ann(ToolRules { allowed: Some(vec![]), denied: vec![] });
    let call = CallTool { caller: unknown, ..as_caller("nonsense") };
    assert_eq!(runtime.call_tool(call).await.map(drop).unwrap_err().code, Code::Denied, "not even whether it exists");
    assert_eq!(fake.calls.load(Ordering::SeqCst), 0);
    assert!(runtime.call_tool(as_caller("s_a")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_the_scopes_sees_the_tools_and_calls_those_that_require_none() {
    // mcp.md 10.1, step-up: a client can only ask a token for what it sees.
    let fake =
        Arc::new(Fake { tools: std::sync::Mutex::new(["a", "b", "c"].map(str::to_owned).into()), ..Fake::default() });
    let scopes = |list: &[&str]| -> Arc<[String]> { list.iter().map(|text| (*text).to_owned()).collect() };
    let of_tool = |list: &[&str]| ToolOverride { required_scopes: Some(scopes(list)), ..ToolOverride::default() };
    let guarded = server("s", |config| {
        config.required_scopes = scopes(&["read"]);
        config.tools = vec![("b".to_owned(), of_tool(&["read", "write"])), ("c".to_owned(), of_tool(&[]))];
    });
    let runtime = start(&fake, vec![guarded], Options::default()).await;
    let holding = |list: &[&str]| {
        let mut caller = ann(ToolRules::default());
        caller.principal.scopes = HeldScopes::Only(scopes(list));
        caller
    };
    let attempt = async |caller: Caller, name: &str| {
        runtime.call_tool(CallTool { caller, scope: scope(), ..call(name, "t") }).await.map(drop)
    };
    assert_eq!(runtime.list_tools(&holding(&[]), &scope()).await.unwrap().tools.len(), 3);
    for (held, name, required) in [
        (&[][..], "s_a", &["read"][..]),
        (&["write"], "s_b", &["read", "write"]),
        (&["read"], "s_b", &["read", "write"]),
    ] {
        let refused = attempt(holding(held), name).await.unwrap_err();
        assert_eq!((refused.code, refused.required_scopes), (Code::Denied, Some(scopes(required))), "{name}");
    }
    assert_eq!(fake.calls.load(Ordering::SeqCst), 0, "nothing reached the server");
    for (caller, name) in [(holding(&["read"]), "s_a"), (holding(&[]), "s_c"), (ann(ToolRules::default()), "s_b")] {
        attempt(caller, name).await.unwrap();
    }
    assert_eq!(runtime.required_scopes(None).await, ["read", "write"]);
    assert_eq!(runtime.required_scopes(Some(&"other".into())).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn only_an_admin_is_told_why_a_server_failed() {
    let fake = Arc::new(Fake { failing: vec!["f"], ..Fake::default() });
    let runtime = start(&fake, vec![server("s", |_| ()), server("f", |_| ())], Options::default()).await;
    let caller = ann(ToolRules::default());
    let told = runtime.list_tools(&anybody(), &scope()).await.unwrap().failed;
    let hidden = runtime.list_tools(&caller, &scope()).await.unwrap().failed;
    assert_eq!((&told[0].0, &hidden[0].0), (&ServerName::from("f"), &ServerName::from("f")));
    assert_ne!(told[0].1, hidden[0].1);
    let servers = runtime.servers(&caller).await;
    assert!(servers.iter().all(|server| server.last_error.is_none() && server.stderr_tail.is_empty()));
    assert_eq!(servers[1].absent(), Some("failed"));
    assert!(runtime.servers(&anybody()).await[1].last_error.is_some());
}

#[tokio::test(start_paused = true)]
async fn nobody_closes_the_sessions_of_another_user() {
    // Invariant P1.
    let (_fake, runtime) = with_tools(&["count"], Options::default()).await;
    runtime.call_tool(call("s_count", "t")).await.map(drop).unwrap();
    let caller = ann(ToolRules::default());
    let bobs = Scope::new(Some("bob"), Some("t"));
    assert_eq!(runtime.close_sessions(&caller, &bobs, None).await.unwrap_err().code, Code::Denied);
    assert_eq!(runtime.reset(&caller).await.map(drop).unwrap_err().code, Code::Denied);
    assert_eq!(runtime.refresh_tools(&caller, None).await.unwrap_err().code, Code::Denied);
    assert_eq!(runtime.read_config(&caller).await.map(drop).unwrap_err().code, Code::Denied);
}

/// Whoever presents a name is that user.
struct ByName;

impl Authenticator for ByName {
    fn authenticate(&self, bearer: Option<Secret>) -> BoxFuture<'_, Result<Principal, Unauthenticated>> {
        let caller = bearer.ok_or(Unauthenticated::Missing).map(|name| Principal {
            id: name.expose().into(),
            user: name.expose().into(),
            roles: Roles::default(),
            tools: Arc::default(),
            scopes: HeldScopes::All,
        });
        Box::pin(async { caller })
    }
}

async fn gated(rate_limit: Option<Rate>) -> Runtime {
    let connector = Arc::new(FakeConnector(Arc::new(Fake::default())));
    let outside = Outside { authenticator: Some(Arc::new(ByName)), ..Outside::from(connector) };
    Runtime::start(vec![], Options { rate_limit, ..Options::default() }, outside, BootId::from("boot")).await.unwrap()
}

async fn admit(runtime: &Runtime, name: &str) -> Result<String, NotAdmitted> {
    runtime.admit(Some(Secret::new(name))).await.map(|principal| principal.user.to_string())
}

#[tokio::test(start_paused = true)]
async fn each_caller_is_let_in_as_often_as_the_limit_says() {
    let runtime = gated(Rate::new(2.0, 3)).await;
    for _ in 0..3 {
        assert_eq!(admit(&runtime, "ann").await, Ok("ann".to_owned()));
    }
    let half_a_second = Duration::from_millis(500);
    assert_eq!(admit(&runtime, "ann").await, Err(NotAdmitted::Limited { retry_after: half_a_second }));
    assert_eq!(admit(&runtime, "bob").await, Ok("bob".to_owned()));
    tokio::time::advance(half_a_second).await;
    assert!(admit(&runtime, "ann").await.is_ok() && admit(&runtime, "ann").await.is_err());
    let missing = NotAdmitted::Unauthenticated(Unauthenticated::Missing);
    assert_eq!(runtime.admit(None).await, Err(missing));
}

#[tokio::test(start_paused = true)]
async fn without_an_authenticator_everybody_may_everything() {
    let (_fake, runtime) = with_tools(&["a"], Options::default()).await;
    assert!(!runtime.tells_callers_apart() && gated(None).await.tells_callers_apart());
    assert_eq!(runtime.admit(None).await, Ok(Principal::local()));
    assert_eq!(runtime.admit(Some(Secret::new("anything"))).await, Ok(Principal::local()));
}

#[test]
fn a_scope_is_judged_before_it_is_used() {
    let caller = ann(ToolRules::default());
    assert_eq!(caller.scope(None, Some("t")).unwrap(), scope());
    assert_eq!(caller.scope(Some("ann"), None).unwrap().to_string(), "ann:default");
    assert_eq!(caller.scope(Some("bob"), None).unwrap_err().code, Code::Denied);
    assert_eq!(caller.scope(Some("bob"), Some("a b")).unwrap_err().code, Code::Invalid);
    assert_eq!(Caller::local(Door::Library).scope(None, None).unwrap().to_string(), "default:default");
}
