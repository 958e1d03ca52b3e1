//! The rows of the table of contract 6.7: answers of one kind, and what each means.

use caribou_core::task::Status;

use super::table::Means::{Answered, Breach, Refused, Retried, State, Task, Unknown, Unsupported};
use super::table::{Cell, Duty, Duty::Cancel, Duty::Submit, Means, Row};
use super::upstream::{Says, result, tool};

/// All of them.
pub(super) fn rows() -> Vec<Row> {
    let parts = [
        handles(),
        failures(),
        payloads(),
        names(),
        states(),
        ends(),
        unknown_tasks(),
        questions(),
        times(),
        artifacts_and_sizes(),
        losses(),
    ];
    parts.into_iter().flatten().collect()
}

/// The same answer to a status and to a cancel.
fn both(says: impl Fn() -> Vec<Says>, status: Means, cancel: Means) -> Vec<Cell> {
    vec![(Duty::Status, says(), status), (Cancel, says(), cancel)]
}

/// A payload of the tools to all three duties.
fn all(structured: &str, submit: Means, status: Means, cancel: Means) -> Vec<Cell> {
    let mut cells = both(|| vec![tool(structured)], status, cancel);
    cells.push((Submit, vec![tool(structured)], submit));
    cells
}

/// The state of the legacy task, and the same of the modern one.
fn get(members: &str) -> Says {
    result(&format!(r#"{{"resultType":"complete","taskId":"r",{members}}}"#))
}

const RUNS: &str = r#""status":"working""#;
const GONE: Option<&str> = Some("the MCP server no longer knows the task; it said that it keeps it for 60 s");

fn handles() -> Vec<Row> {
    let legacy = |task: &str| vec![result(&format!(r#"{{"task":{task}}}"#))];
    vec![
        Row {
            name: "a handle",
            tools: vec![(Submit, vec![tool(r#"{"task_id":"a","status":"running","more":1}"#)], Task("a"))],
            legacy: vec![(
                Submit,
                legacy(r#"{"taskId":"a","status":"working","ttl":null,"pollInterval":500}"#),
                Task("a"),
            )],
            modern: vec![(
                Submit,
                vec![result(r#"{"resultType":"task","taskId":"a","status":"working","ttlMs":1,"pollIntervalMs":2}"#)],
                Task("a"),
            )],
        },
        Row {
            name: "an ordinary result, which only a tool of a toolset may not give",
            tools: vec![(Submit, vec![result(r#"{"content":[]}"#)], Breach("structuredContent is missing"))],
            legacy: vec![(Submit, vec![result(r#"{"content":[],"isError":true}"#)], Answered)],
            modern: vec![
                (Submit, vec![result(r#"{"resultType":"complete","content":[]}"#)], Answered),
                (Submit, vec![result(r#"{"content":[],"taskId":"a","status":"working"}"#)], Answered),
            ],
        },
    ]
}

fn failures() -> Vec<Row> {
    let texts = r#"{"isError":true,"content":[{"type":"image"},{"type":"text","text":"full"},{"type":"text","text":"b"}],
        "structuredContent":{"task_id":"r","status":"completed"}}"#;
    let told = |role: &'static str, more: &'static str| -> Means {
        Retried(format!("MCP task {role} tool returned an error{more}").leak())
    };
    let by_tools = |json: &str, more: &'static str| {
        let mut cells = both(|| vec![result(json)], told("status", more), told("cancel", more));
        cells.push((Submit, vec![result(json)], told("submit", more)));
        cells
    };
    let down = || Says::Rpc(-32_603, "down");
    vec![
        Row {
            name: "isError with text: the first one",
            tools: by_tools(texts, ": full"),
            legacy: vec![],
            modern: vec![],
        },
        Row {
            name: "isError without text",
            tools: by_tools(r#"{"isError":true,"content":[]}"#, ""),
            legacy: vec![],
            modern: vec![],
        },
        Row {
            name: "what a tool reports of itself, of a task of the protocol: a completion",
            tools: vec![],
            legacy: vec![(
                Duty::Status,
                vec![get(r#""status":"failed""#), result(r#"{"content":[],"isError":true}"#)],
                State(Status::Completed, None),
            )],
            modern: vec![(
                Duty::Status,
                vec![get(r#""status":"completed","result":{"content":[],"isError":true}"#)],
                State(Status::Completed, None),
            )],
        },
        Row {
            name: "a JSON-RPC error",
            tools: [(Submit, vec![down()], Refused("down"))]
                .into_iter()
                .chain(both(|| vec![down()], Refused("down"), Refused("down")))
                .collect(),
            legacy: vec![
                (Submit, vec![down()], Refused("down")),
                (Submit, vec![Says::Rpc(-32_601, "augmentation required")], Refused("augmentation required")),
                (Duty::Status, vec![down()], Refused("down")),
                (Cancel, vec![down(), get(RUNS)], Breach("has not ended yet")),
            ],
            modern: vec![
                (Submit, vec![down()], Refused("down")),
                (Duty::Status, vec![down()], Refused("down")),
                (Cancel, vec![down(), get(RUNS)], Breach("has not ended yet")),
            ],
        },
        Row {
            name: "a capability that the server cannot do without",
            tools: vec![],
            legacy: vec![],
            modern: vec![
                (Submit, vec![Says::Rpc(-32_021, "sampling needed")], Unsupported("sampling needed; declare")),
                (Duty::Status, vec![Says::Rpc(-32_021, "undeclared")], Unsupported("client_capabilities")),
            ],
        },
    ]
}

fn payloads() -> Vec<Row> {
    let missing = || Breach("structuredContent is missing");
    let text = r#"{"content":[{"type":"text","text":"{\"task_id\":\"r\",\"status\":\"running\"}"}]}"#;
    let mut by_text = both(|| vec![result(text)], missing(), missing());
    by_text.push((Submit, vec![result(text)], missing()));
    by_text.extend(all("null", missing(), missing(), missing()));
    let wrong = || Breach("not an object");
    vec![
        Row { name: "structuredContent missing or null", tools: by_text, legacy: vec![], modern: vec![] },
        Row {
            name: "not an object",
            tools: ["[]", "\"r\"", "7"].into_iter().flat_map(|odd| all(odd, wrong(), wrong(), wrong())).collect(),
            legacy: vec![
                (Submit, vec![result(r#"{"task":null}"#)], wrong()),
                (Duty::Status, vec![result("[]")], wrong()),
                (Cancel, vec![result("[]")], wrong()),
            ],
            modern: vec![
                (Duty::Status, vec![result("[]")], wrong()),
                (Cancel, vec![result("{}"), result("[]")], wrong()),
            ],
        },
    ]
}

fn names() -> Vec<Row> {
    let nameless = |id: &str| format!(r#"{{{id}"status":"running"}}"#);
    let missing = || Breach("task_id is missing");
    let unnamed = || Breach("taskId is missing");
    let long: &'static str = "r".repeat(300).leak();
    let other = || Breach("another one");
    vec![
        Row {
            name: "task_id missing or empty",
            tools: ["", r#""task_id":"","#, r#""task_id":" ","#, r#""task_id":null,"#]
                .into_iter()
                .flat_map(|id| all(&nameless(id), missing(), missing(), missing()))
                .collect(),
            legacy: vec![
                (Submit, vec![result(r#"{"task":{"status":"working"}}"#)], unnamed()),
                (Duty::Status, vec![result(r#"{"status":"working"}"#)], unnamed()),
                (Cancel, vec![result(r#"{"status":"cancelled"}"#)], unnamed()),
            ],
            modern: vec![
                (Submit, vec![result(r#"{"resultType":"task","status":"working"}"#)], unnamed()),
                (Duty::Status, vec![result(r#"{"taskId":"","status":"working"}"#)], unnamed()),
            ],
        },
        Row {
            name: "another task_id",
            tools: both(|| vec![tool(r#"{"task_id":"s","status":"cancelled"}"#)], other(), other()),
            legacy: both(|| vec![result(r#"{"taskId":"s","status":"cancelled"}"#)], other(), other()),
            modern: vec![
                (Duty::Status, vec![result(r#"{"taskId":"s","status":"working"}"#)], other()),
                (Cancel, vec![result("{}"), result(r#"{"taskId":"s","status":"cancelled"}"#)], other()),
            ],
        },
        Row {
            name: "task_id of more than 255 characters: looked at with the handle in hand, or no name of ours",
            tools: all(&format!(r#"{{"task_id":"{long}","status":"running"}}"#), Task(long), other(), other()),
            legacy: vec![(
                Submit,
                vec![result(&format!(r#"{{"task":{{"taskId":"{long}","status":"working"}}}}"#))],
                Task(long),
            )],
            modern: vec![(
                Submit,
                vec![result(&format!(r#"{{"resultType":"task","taskId":"{long}","status":"working"}}"#))],
                Task(long),
            )],
        },
    ]
}

fn states() -> Vec<Row> {
    let one = |status: &str| format!(r#"{{"task_id":"r","status":{status}}}"#);
    let (submitted, none, terminal) =
        (|| Breach("must be running"), || Breach("the status is none"), || Breach("must be terminal"));
    let working = || State(Status::Working, None);
    vec![
        Row {
            name: "an unknown status",
            tools: [r#""queued""#, r#""paused""#]
                .into_iter()
                .flat_map(|status| all(&one(status), submitted(), none(), terminal()))
                .collect(),
            legacy: vec![
                (Submit, vec![result(r#"{"task":{"taskId":"a","status":"queued"}}"#)], none()),
                (Duty::Status, vec![get(r#""status":"paused""#)], none()),
                (Cancel, vec![get(r#""status":"paused""#)], none()),
            ],
            modern: vec![
                (Submit, vec![result(r#"{"resultType":"task","taskId":"a","status":"queued"}"#)], none()),
                (Submit, vec![result(r#"{"resultType":"task","taskId":"a"}"#)], none()),
                (Duty::Status, vec![get(r#""status":"paused""#)], none()),
                (Cancel, vec![result("{}"), get(r#""status":"paused""#)], none()),
            ],
        },
        Row {
            name: "no status, or one that is no text",
            tools: [all("{\"task_id\":\"r\"}", submitted(), Breach("status is missing"), Breach("status is missing"))]
                .into_iter()
                .chain([all(
                    &one("7"),
                    Breach("status is not a string"),
                    Breach("status is not a string"),
                    Breach("status is not a string"),
                )])
                .flatten()
                .collect(),
            legacy: vec![(Duty::Status, vec![result(r#"{"taskId":"r"}"#)], none())],
            modern: vec![(Duty::Status, vec![result(r#"{"taskId":"r","status":7}"#)], none())],
        },
        Row {
            name: "running: no end of a cancel",
            tools: both(|| vec![tool(&one(r#""running""#))], working(), terminal()),
            legacy: vec![
                (Duty::Status, vec![get(RUNS)], working()),
                (Cancel, vec![get(RUNS), get(RUNS)], Breach("has not ended yet")),
            ],
            modern: vec![
                (Duty::Status, vec![get(RUNS)], working()),
                (Cancel, vec![result("{}"), get(RUNS)], Breach("has not ended yet")),
            ],
        },
        Row {
            name: "a terminal status is no answer to a submit",
            tools: vec![(Submit, vec![tool(r#"{"task_id":"a","status":"completed"}"#)], submitted())],
            legacy: vec![],
            modern: vec![],
        },
    ]
}

fn ends() -> Vec<Row> {
    let one = |members: &str| vec![tool(&format!(r#"{{"task_id":"r",{members}}}"#))];
    let by_both = |members: &str, means: fn() -> Means| both(|| one(members), means(), means());
    let completed = || State(Status::Completed, None);
    let cancelled = || State(Status::Cancelled, None);
    let refused = || Says::Rpc(-32_602, "terminal");
    let is_cancelled = || get(r#""status":"cancelled""#);
    let mut tools = by_both(r#""status":"cancelled""#, cancelled);
    for any in ["0", "false", "\"\"", "[]", "{\"b\":1e400}"] {
        tools.extend(by_both(&format!(r#""status":"completed","result":{any},"extra":1"#), completed));
    }
    tools.extend(by_both(r#""status":"failed","error":"e""#, || State(Status::Failed, Some("e"))));
    vec![Row {
        name: "an end, with any result",
        tools,
        legacy: vec![
            (Duty::Status, vec![is_cancelled()], cancelled()),
            (Duty::Status, vec![get(r#""status":"completed""#), result(r#"{"content":[]}"#)], completed()),
            (
                Duty::Status,
                vec![get(r#""status":"failed","statusMessage":"m""#), Says::Rpc(-32_603, "down")],
                State(Status::Failed, Some("m")),
            ),
            (
                Duty::Status,
                vec![get(r#""status":"failed""#), Says::Rpc(-32_603, "down")],
                State(Status::Failed, Some("down")),
            ),
            (Cancel, vec![is_cancelled()], cancelled()),
            (Cancel, vec![refused(), is_cancelled()], cancelled()),
            (Cancel, vec![refused(), get(r#""status":"completed""#), result("{}")], completed()),
        ],
        modern: vec![
            (Duty::Status, vec![is_cancelled()], cancelled()),
            (Duty::Status, vec![get(r#""status":"completed","result":{}"#)], completed()),
            (Duty::Status, vec![get(r#""status":"completed""#)], Breach("the result of a completed task is missing")),
            (Duty::Status, vec![get(r#""status":"failed","statusMessage":"m""#)], State(Status::Failed, Some("m"))),
            (
                Duty::Status,
                vec![get(r#""status":"failed","error":{"code":-32603,"message":"down"}"#)],
                State(Status::Failed, Some("the server answered with error -32603: down")),
            ),
            (Cancel, vec![result("{}"), is_cancelled()], cancelled()),
            (Cancel, vec![refused(), get(r#""status":"completed","result":{}"#)], completed()),
        ],
    }]
}

fn unknown_tasks() -> Vec<Row> {
    let one = |members: &str| vec![tool(&format!(r#"{{"task_id":"r",{members}}}"#))];
    let refused = || Says::Rpc(-32_602, "terminal");
    let unknown = || Says::Rpc(-32_602, "unknown task");
    let not_found = Some("the MCP server no longer knows the task");
    vec![
        Row {
            name: "task_not_found: failed whatever its status; a cancel takes no notice of it",
            tools: vec![
                (
                    Duty::Status,
                    one(r#""status":"x","error_code":"task_not_found","error":"e""#),
                    State(Status::Failed, Some("e")),
                ),
                (Duty::Status, one(r#""error_code":"task_not_found""#), State(Status::Failed, not_found)),
                (Cancel, one(r#""status":"completed","error_code":"task_not_found""#), State(Status::Completed, None)),
            ],
            legacy: vec![
                (Duty::Status, vec![unknown()], State(Status::Failed, GONE)),
                (Duty::Status, vec![get(r#""status":"completed""#), unknown()], State(Status::Failed, GONE)),
                (Cancel, vec![refused(), unknown()], State(Status::Failed, GONE)),
            ],
            modern: vec![
                (Duty::Status, vec![unknown()], State(Status::Failed, GONE)),
                (Cancel, vec![refused(), unknown()], State(Status::Failed, GONE)),
            ],
        },
        Row {
            name: "another error_code is ignored",
            tools: vec![
                (Duty::Status, one(r#""status":"running","error_code":"slow""#), State(Status::Working, None)),
                (Cancel, one(r#""status":"cancelled","error_code":"slow""#), State(Status::Cancelled, None)),
            ],
            legacy: vec![],
            modern: vec![],
        },
    ]
}

fn questions() -> Vec<Row> {
    let one = |members: &str| vec![tool(&format!(r#"{{"task_id":"r","status":"input_required"{members}}}"#))];
    let asks = || State(Status::InputRequired, None);
    let modern = |members: &str| vec![get(&format!(r#""status":"input_required"{members}"#))];
    let request = r#","inputRequests":{"k":{"method":"elicitation/create","params":{}}}"#;
    vec![
        Row {
            name: "a question",
            tools: both(|| one(r#","input_required":{"q":1}"#), asks(), Breach("must be terminal")),
            legacy: vec![(Duty::Status, vec![get(r#""status":"input_required""#)], asks())],
            modern: vec![(Duty::Status, modern(request), asks())],
        },
        Row {
            name: "input_required without payload",
            tools: ["", r#","input_required":null"#]
                .into_iter()
                .map(|more| (Duty::Status, one(more), Breach("input_required is missing")))
                .collect(),
            legacy: vec![],
            modern: vec![(Duty::Status, modern(""), Breach("inputRequests is missing"))],
        },
        Row {
            name: "a payload that is no object",
            tools: vec![
                (Duty::Status, one(r#","input_required":"yes?""#), Breach("input_required is not an object")),
                (
                    Duty::Status,
                    vec![tool(r#"{"task_id":"r","status":"running","input_required":[]}"#)],
                    Breach("input_required is not an object"),
                ),
            ],
            legacy: vec![],
            modern: vec![(Duty::Status, modern(r#","inputRequests":[]"#), Breach("inputRequests is missing"))],
        },
    ]
}

fn times() -> Vec<Row> {
    let one = |members: &str| vec![tool(&format!(r#"{{"task_id":"r",{members}}}"#))];
    let hint = |value: &str| one(&format!(r#""status":"running","poll_after_seconds":{value}"#));
    vec![
        Row {
            name: "poll_after_seconds that is no positive number",
            tools: ["0", "-1", "1e999", "\"5\"", "true", "[]"]
                .into_iter()
                .map(|value| (Duty::Status, hint(value), Breach("poll_after_seconds")))
                .collect(),
            legacy: vec![(
                Duty::Status,
                vec![get(r#""status":"working","pollInterval":-1"#)],
                State(Status::Working, None),
            )],
            modern: vec![(
                Duty::Status,
                vec![get(r#""status":"working","pollIntervalMs":0"#)],
                State(Status::Working, None),
            )],
        },
        Row {
            name: "poll_after_seconds of 1e20",
            tools: vec![(Duty::Status, hint("1e20"), State(Status::Working, None))],
            legacy: vec![(
                Duty::Status,
                vec![get(r#""status":"working","pollInterval":1e20"#)],
                State(Status::Working, None),
            )],
            modern: vec![(
                Duty::Status,
                vec![get(r#""status":"working","pollIntervalMs":1e20"#)],
                State(Status::Working, None),
            )],
        },
    ]
}

fn artifacts_and_sizes() -> Vec<Row> {
    let one = |members: &str| vec![tool(&format!(r#"{{"task_id":"r",{members}}}"#))];
    let artifact = |value: &str| one(&format!(r#""status":"completed","result_artifact":{value}"#));
    let large = "x".repeat(1_000);
    let whole = r#"{"uri":"u","mime_type":"m","size":3}"#;
    let too_large = || Breach("max_status_bytes");
    let odd = ["{}", r#"{"uri":"u"}"#, r#"{"uri":"","mime_type":"m"}"#, r#"{"uri":"u","mime_type":7}"#, "\"u\""];
    vec![
        Row {
            name: "result_artifact without uri or mime_type, or empty",
            tools: odd
                .into_iter()
                .flat_map(|odd| both(|| artifact(odd), Breach("result_artifact"), Breach("result_artifact")))
                .collect(),
            legacy: vec![],
            modern: vec![],
        },
        Row {
            name: "extra members of an artifact are dropped",
            tools: both(|| artifact(whole), State(Status::Completed, None), State(Status::Completed, None)),
            legacy: vec![],
            modern: vec![],
        },
        Row {
            name: "more bytes than are read at all",
            tools: vec![(Duty::Status, one(&format!(r#""status":"completed","result":"{large}""#)), too_large())],
            legacy: vec![(
                Duty::Status,
                vec![get(r#""status":"completed""#), result(&format!(r#"{{"content":"{large}"}}"#))],
                too_large(),
            )],
            modern: vec![(
                Duty::Status,
                vec![get(&format!(r#""status":"completed","result":{{"x":"{large}"}}"#))],
                too_large(),
            )],
        },
    ]
}

fn losses() -> Vec<Row> {
    let lost = || Unknown("broke off");
    let alike = || {
        vec![
            (Submit, vec![Says::Lost], lost()),
            (Duty::Status, vec![Says::Lost], lost()),
            (Cancel, vec![Says::Lost], lost()),
        ]
    };
    let mut legacy = alike();
    legacy.push((Duty::Status, vec![get(r#""status":"completed""#), Says::Lost], lost()));
    legacy.push((Duty::Status, vec![get(r#""status":"completed""#), Says::Rpc(-32_603, "busy")], Refused("busy")));
    vec![Row { name: "no answer", tools: alike(), legacy, modern: alike() }]
}
