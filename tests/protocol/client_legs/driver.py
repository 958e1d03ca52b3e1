# What the conformance suite starts as the client that it tries: the upstream side of the Caribou at $DRIVEN_CARIBOU.
# Given the address of a server that the suite plays, makes it the only server of that Caribou, and does through
# Caribou's own doors what the scenario asks of a client.
import fcntl, json, os, sys, urllib.error, urllib.parse, urllib.request

CARIBOU, SERVER = os.environ["DRIVEN_CARIBOU"], sys.argv[1]
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
# Nothing leaves the machine by a proxy.
WEB = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def web(method, url, body=None, **headers):
    """The body of the answer, which is JSON or an event stream whose last event is the answer."""
    body = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        with WEB.open(request, timeout=60) as answer:
            text = answer.read().decode()
    except urllib.error.HTTPError as refusal:
        sys.exit(f"{method} {url}: HTTP {refusal.code}: {refusal.read().decode()}")
    events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return json.loads(events[-1] if events else text)


def configure():
    entry = {"type": "http", "url": SERVER}
    if "client_secret" in CONTEXT:
        entry["oauth"] = oauth()
    web("PUT", CARIBOU + "/api/mcp/config", {"mcp_servers": {"suite": entry}})


def oauth():
    """What an operator writes who was given a client, and has read what both servers say of themselves."""
    resource = web("GET", urllib.parse.urljoin(SERVER, "/.well-known/oauth-protected-resource/mcp"))
    metadata = resource["authorization_servers"][0] + "/.well-known/oauth-authorization-server"
    issuer = web("GET", metadata)
    return {
        "token_url": issuer["token_endpoint"],
        "client_id": CONTEXT["client_id"],
        "client_secret": CONTEXT["client_secret"],
        "token_endpoint_auth_method": issuer["token_endpoint_auth_methods_supported"][0],
        "extra_token_params": {"resource": resource["resource"]},
    }


def ask(method, **params):
    """Asks Caribou's MCP endpoint of the one server, as a modern client with a person before it."""
    capabilities = {"elicitation": {}}
    meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities}
    headers = {"accept": "application/json, text/event-stream", "mcp_protocol_version": MODERN, "mcp_method": method}
    if named := params.get("name", params.get("uri")):
        headers["mcp_name"] = named
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    answer = web("POST", CARIBOU + "/mcp/suite", body, **headers)
    return answer["result"] if "result" in answer else sys.exit(f"{method}: {answer}")


def tools():
    return {tool["name"]: tool for tool in ask("tools/list")["tools"]}


def call(name, arguments={}):
    return web("POST", CARIBOU + "/api/mcp/tools/call", {"name": "suite_" + name, "arguments": arguments})


def filled_in(asked):
    """What a person says who takes every field as it is proposed, and yes where nothing is."""
    fields = asked["params"]["requestedSchema"]["properties"]
    return {"action": "accept", "content": {name: field.get("default", True) for name, field in fields.items()}}


def converse(name, meanwhile=lambda: None):
    """Calls a tool that asks for something before it ends."""
    result = ask("tools/call", name=name, arguments={})
    if result["resultType"] != "input_required":
        sys.exit(f"{name} asks for nothing: {result}")
    meanwhile()
    given = {key: filled_in(asked) for key, asked in result["inputRequests"].items()}
    state = {"requestState": result["requestState"]} if "requestState" in result else {}
    return ask("tools/call", name=name, arguments={}, inputResponses=given, **state)


def every_kind_of_request():
    call("test_headers")
    call("my-hyphenated-tool")
    for resource in ask("resources/list")["resources"]:
        ask("resources/read", uri=resource["uri"])
    for prompt in ask("prompts/list")["prompts"]:
        ask("prompts/get", name=prompt["name"])


def ask_in_rounds():
    converse("test_mrtr_echo_state", meanwhile=lambda: call("test_mrtr_unrelated"))
    converse("test_mrtr_no_state")
    call("test_mrtr_no_result_type")


ACTIONS = {
    "initialize": tools,
    "request-metadata": tools,
    "json-schema-ref-no-deref": tools,
    "tools_call": lambda: call("add_numbers", {"a": 2, "b": 3}),
    "sse-retry": lambda: call("test_reconnection"),
    "elicitation-sep1034-client-defaults": lambda: converse("test_client_elicitation_defaults"),
    "sep-2322-client-request-state": ask_in_rounds,
    "http-standard-headers": every_kind_of_request,
    "http-custom-headers": lambda: [call(**of_tool) for of_tool in CONTEXT["toolCalls"]],
    "http-invalid-tool-headers": lambda: [call(tool, {"region": "north"}) for tool in tools()],
    "json-schema-2020-12-preservation": lambda: call(
        "json_schema_echo", {"schema": tools()["json_schema_2020_12_tool"]["inputSchema"]}
    ),
}

# The suite starts all scenarios at once: one goes after the other, since they share a Caribou and one measures time.
with open("turn", "w") as turn:
    fcntl.flock(turn, fcntl.LOCK_EX)
    configure()
    ACTIONS.get(SCENARIO, lambda: call("test-tool"))()
