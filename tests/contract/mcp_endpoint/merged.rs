//! Prompts and resources of all servers as those of one (mcp.md 14.3; §17, bridge).

use caribou_tests::{Answer, Setup, StdioFake};
use serde_json::{Value, json};

use super::client::{Session, modern};

/// A server with prompts and resources of this kind beside one tool, and whatever else it does.
fn offering(setup: Setup, name: &str, on: Value) -> (Setup, StdioFake) {
    let capabilities = json!({ "tools": {}, "prompts": {}, "resources": {}, "completions": {} });
    let info = json!({ "name": "fake", "version": "0" });
    let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info });
    let held = json!({ "type": "resource", "resource": { "uri": format!("{name}://held"), "text": "t" } });
    let link = json!({ "type": "resource_link", "uri": format!("{name}://linked"), "name": "l" });
    let text = json!({ "contents": [{ "uri": format!("{name}://1"), "text": name }] });
    let template = json!({ "uriTemplate": format!("{name}://t/{{id}}"), "name": "t" });
    let message = json!({ "role": "user", "content": held });
    let mut all = json!({
        "initialize": [{ "result": greeting }],
        "resources/list": [{ "result": { "resources": [{ "name": "r", "uri": format!("{name}://1"), "z": 1.0 }] } }],
        "resources/templates/list": [{ "result": { "resourceTemplates": [template] } }],
        "resources/read": [{ "result": text }],
        "prompts/list": [{ "result": { "prompts": [{ "name": "greet.me", "z": 1.0 }] } }],
        "prompts/get": [{ "result": { "messages": [message] } }],
        "completion/complete": [{ "result": { "completion": { "values": [name] } } }],
    });
    for (method, steps) in on.as_object().unwrap() {
        all[method] = steps.clone();
    }
    let script = json!({ "on": all, "calls": { "show": [{ "result": { "content": [held, link] } }] } });
    let fake = StdioFake::new(setup.home(), name, script);
    let entry = fake.entry();
    (setup.server(name, entry), fake)
}

fn result(answer: &Answer) -> Value {
    let json = answer.json();
    assert!(json["result"].is_object(), "{json}");
    json["result"].clone()
}

fn named(items: &Value, member: &str) -> Vec<String> {
    items.as_array().unwrap().iter().map(|item| item[member].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn prompts_and_resources_of_all_servers_are_listed_read_and_completed_by_their_shown_names() {
    let (setup, a) = offering(Setup::new(), "a", json!({}));
    let (setup, b) = offering(setup, "b", json!({}));
    let caribou = setup.start().await;
    assert_eq!(caribou.tool_names().await, ["a_show", "b_show"]);
    let session = Session::open(&caribou, "/mcp").await;
    for kind in ["prompts", "resources", "completions"] {
        assert!(session.greeting["capabilities"][kind].is_object(), "{}", session.greeting);
    }
    let resources = result(&session.ask("resources/list", json!({})).await);
    assert_eq!(named(&resources["resources"], "uri"), ["caribou:a/a://1", "caribou:b/b://1"]);
    assert_eq!((&resources["resources"][0]["z"], resources.get("nextCursor")), (&json!(1.0), None), "W1");
    let templates = result(&session.ask("resources/templates/list", json!({})).await);
    let shown = named(&templates["resourceTemplates"], "uriTemplate");
    assert_eq!(shown, ["caribou:a/a://t/{id}", "caribou:b/b://t/{id}"]);
    let read = result(&session.ask("resources/read", json!({ "uri": shown[1].replace("{id}", "7") })).await);
    assert_eq!(read["contents"][0]["uri"], "caribou:b/b://1");
    assert_eq!(b.log().received("resources/read")[0].message()["params"]["uri"], "b://t/7");

    let prompts = result(&session.ask("prompts/list", json!({})).await);
    assert_eq!(named(&prompts["prompts"], "name"), ["a_greet.me", "b_greet.me"]);
    let got = result(&session.ask("prompts/get", json!({ "name": "b_greet.me", "arguments": { "x": "y" } })).await);
    assert_eq!(got["messages"][0]["content"]["resource"]["uri"], "caribou:b/b://held");
    let sent = b.log().received("prompts/get")[0].message()["params"].clone();
    assert_eq!((&sent["name"], &sent["arguments"]), (&"greet.me".into(), &json!({ "x": "y" })), "{sent}");

    let argument = json!({ "name": "id", "value": "1" });
    for (reference, member, raw) in [
        (json!({ "type": "ref/prompt", "name": "a_greet.me" }), "name", "greet.me"),
        (json!({ "type": "ref/resource", "uri": "caribou:a/a://t/{id}" }), "uri", "a://t/{id}"),
    ] {
        let asked = json!({ "ref": reference, "argument": argument });
        let completed = result(&session.ask("completion/complete", asked).await);
        assert_eq!(completed["completion"]["values"], json!(["a"]));
        let sent = a.log().received("completion/complete").pop().unwrap().message()["params"].clone();
        assert_eq!((&sent["ref"][member], &sent["argument"]), (&raw.into(), &argument), "{sent}");
    }

    // What a tool holds or links to can be read back.
    let shown = result(&session.call("a_show", json!({})).await)["content"].clone();
    let uris = [&shown[0]["resource"]["uri"], &shown[1]["uri"]];
    assert_eq!(uris, ["caribou:a/a://held", "caribou:a/a://linked"]);
    result(&session.ask("resources/read", json!({ "uri": uris[1] })).await);
    assert_eq!(a.log().received("resources/read")[0].message()["params"]["uri"], "a://linked");
    let alone = result(&Session::open(&caribou, "/mcp/a").await.call("show", json!({})).await);
    assert_eq!(alone["content"][1]["uri"], "a://linked", "one server is shown as it is");
}

#[tokio::test]
async fn the_user_interface_of_a_tool_is_read_back_by_the_uri_that_the_tool_tells() {
    // SEP-1865, MCP Apps: hosts take URIs that begin with `ui://` only.
    let tool = |name: &str, meta: Value| json!({ "name": name, "inputSchema": { "type": "object" }, "_meta": meta });
    let tools = json!([
        tool("clock", json!({ "ui": { "resourceUri": "ui://clock/app.html", "visibility": ["model"] } })),
        tool("earlier", json!({ "ui/resourceUri": "ui://clock/app.html" })),
    ]);
    let page = json!({ "contents": [{ "uri": "ui://clock/app.html", "text": "<html>" }] });
    let listed = json!({ "resources": [{ "name": "r", "uri": "ui://clock/app.html" }] });
    let on = json!({ "resources/read": [{ "result": page }], "resources/list": [{ "result": listed }],
        "tools/list": [{ "result": { "tools": tools } }] });
    let (setup, fake) = offering(Setup::new(), "a", on);
    let bare = StdioFake::new(setup.home(), "b", json!({ "tools": tools }));
    let caribou = setup.server("b", bare.entry()).start().await;
    caribou.tool_names().await;
    let session = Session::open(&caribou, "/mcp").await;
    let shown = "ui://caribou/a/ui://clock/app.html";
    let told = result(&session.ask("tools/list", json!({})).await)["tools"].clone();
    let uris = |tools: &Value, at: usize| {
        let ui = [&tools[at]["_meta"]["ui"]["resourceUri"], &tools[at + 1]["_meta"]["ui/resourceUri"]];
        ui.map(|uri| uri.as_str().unwrap().to_owned())
    };
    assert_eq!(told[0]["_meta"]["ui"]["visibility"], json!(["model"]), "{told}");
    assert_eq!(uris(&told, 0), [shown, shown]);
    assert_eq!(uris(&told, 2), ["ui://clock/app.html"; 2], "a server without resources cannot be asked for one");
    let listed = result(&session.ask("resources/list", json!({})).await);
    assert_eq!(named(&listed["resources"], "uri"), [shown]);
    let read = result(&session.ask("resources/read", json!({ "uri": shown })).await);
    assert_eq!((&read["contents"][0]["uri"], &read["contents"][0]["text"]), (&json!(shown), &json!("<html>")));
    assert_eq!(fake.log().received("resources/read")[0].message()["params"]["uri"], "ui://clock/app.html");
    let alone = result(&Session::open(&caribou, "/mcp/a").await.ask("tools/list", json!({})).await)["tools"].clone();
    assert_eq!(uris(&alone, 0), ["ui://clock/app.html"; 2], "one server is shown as it is");
}

#[tokio::test]
async fn what_is_not_there_is_told_in_the_words_of_each_era() {
    // mcp.md §17, S18.
    let missing = json!({ "code": -32002, "message": "none", "data": { "uri": "a://9", "x": 1.0 } });
    let (setup, _) = offering(Setup::new(), "a", json!({ "resources/read": [{ "error": missing }] }));
    let caribou = setup.start().await;
    let session = Session::open(&caribou, "/mcp").await;
    for (uri, data) in [
        ("caribou:a/a://9", json!({ "uri": "caribou:a/a://9", "x": 1.0 })),
        ("caribou:b/a://9", json!({ "uri": "caribou:b/a://9" })),
        ("a://9", json!({ "uri": "a://9" })),
    ] {
        let legacy = session.ask("resources/read", json!({ "uri": uri })).await.json()["error"].clone();
        assert_eq!((&legacy["code"], &legacy["data"]), (&(-32_002).into(), &data), "{legacy}");
        let told = caribou.send(modern(&caribou, "/mcp", "resources/read", json!({ "uri": uri }))).await;
        let error = told.json()["error"].clone();
        assert_eq!((told.status, &error["code"], &error["data"]), (400, &(-32_602).into(), &data), "{error}");
    }
    for name in ["a_", "b_greet.me", "greet.me"] {
        let refused = session.ask("prompts/get", json!({ "name": name })).await.json();
        // The server itself judges the names of its own prompts.
        assert!(name == "a_" || refused["error"]["code"] == -32_602, "{refused}");
    }
}

#[tokio::test]
async fn lists_go_on_where_servers_have_more_and_one_that_fails_is_absent() {
    // mcp.md §17, bridge; architecture.md §9, a repeated cursor.
    let many = json!({ "resources": [{ "uri": "a://1", "name": "r" }], "nextCursor": "more" });
    let (setup, a) = offering(Setup::new(), "a", json!({ "resources/list": [{ "result": many }] }));
    let (setup, _) = offering(setup, "b", json!({}));
    let broken = json!({ "resources/list": [{ "error": { "code": -5, "message": "no" } }],
        "resources/templates/list": [{ "error": { "code": -32601, "message": "no such method" } }] });
    let (setup, _) = offering(setup, "c", broken);
    let caribou = setup.start().await;
    let session = Session::open(&caribou, "/mcp").await;
    let first = result(&session.ask("resources/list", json!({})).await);
    assert_eq!(named(&first["resources"], "uri"), ["caribou:a/a://1", "caribou:b/b://1"]);
    let cursor = first["nextCursor"].as_str().unwrap().to_owned();
    let second = result(&session.ask("resources/list", json!({ "cursor": cursor })).await);
    assert_eq!((named(&second["resources"], "uri").len(), second.get("nextCursor")), (1, None), "a loop has an end");
    assert_eq!(a.log().received("resources/list")[1].message()["params"], json!({ "cursor": "more" }));
    let templates = result(&session.ask("resources/templates/list", json!({})).await);
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 2, "one has none");

    let code = async |method: &str, cursor: String| {
        session.ask(method, json!({ "cursor": cursor })).await.json()["error"]["code"].clone()
    };
    assert_eq!(code("resources/list", cursor.replace("more", "mure")).await, -32_602, "changed");
    assert_eq!(code("resources/templates/list", cursor.clone()).await, -32_602, "of another list");
    let off = json!({ "server_name": "b", "enabled": false }).to_string();
    let off = caribou.request("PATCH", "/api/mcp/config").header("content-type", "application/json").body(off);
    assert_eq!(caribou.send(off).await.status, 200);
    assert_eq!(code("resources/list", cursor).await, -32_602, "there are other servers now");
}

#[tokio::test]
async fn a_prompt_that_two_servers_may_have_is_got_from_the_one_that_lists_it() {
    let (setup, a) = offering(Setup::new(), "a", json!({}));
    let inner = json!({ "prompts/list": [{ "result": { "prompts": [{ "name": "c" }] } }] });
    let (setup, inner) = offering(setup, "a_b", inner);
    let caribou = setup.start().await;
    let session = Session::open(&caribou, "/mcp").await;
    result(&session.ask("prompts/get", json!({ "name": "a_b_c" })).await);
    assert_eq!(inner.log().received("prompts/get")[0].message()["params"]["name"], "c");
    assert!(a.log().received("prompts/get").is_empty());
    assert_eq!(session.ask("prompts/get", json!({ "name": "a_b_d" })).await.json()["error"]["code"], -32_602);
}
