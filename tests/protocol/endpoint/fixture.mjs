// What the official conformance suite expects a server to have, over stdio and in both eras, without any library: a
// request that carries the metadata of the modern era is answered in it. The names and texts are the suite's.
import { createHmac, randomBytes } from "node:crypto";
import { createInterface } from "node:readline";

import { SERVES_LEGACY, SERVES_MODERN, answered, begin, methods as ofTasks, missing, sendBy, takes } from "./tasks.mjs";

const META = "io.modelcontextprotocol/";
const PIXEL =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const INFO = { name: "conformance-fixture", version: "1" };
const SERVES = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    completions: {},
    logging: {},
};
const KEY = randomBytes(32);

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
sendBy(send);
const text = (text) => ({ content: [{ type: "text", text }] });
const said = (text) => ({ messages: [{ role: "user", content: { type: "text", text } }] });
const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const refuse = (code, message, data) => Object.assign(new Error(message), { code, data });

// State that a client holds for us: marked, so that a changed one is known.
const mark = (body) => createHmac("sha256", KEY).update(body).digest("hex");
const mint = (state) => {
    const body = JSON.stringify({ ...state, nonce: randomBytes(8).toString("hex") });
    return `${Buffer.from(body).toString("base64url")}.${mark(body)}`;
};
const opened = (state) => {
    if (state === undefined) return undefined;
    const [body, marked] = String(state).split(".");
    const read = Buffer.from(body, "base64url").toString();
    if (mark(read) !== marked) throw refuse(-32602, "requestState was changed");
    return JSON.parse(read);
};

const form = (message, properties) => {
    const requestedSchema = { type: "object", properties, required: Object.keys(properties) };
    return { method: "elicitation/create", params: { mode: "form", message, requestedSchema } };
};
const word = { type: "string" };
const sample = (text) => ({
    method: "sampling/createMessage",
    params: { messages: [{ role: "user", content: { type: "text", text } }], maxTokens: 50 },
});
const roots = { method: "roots/list" };
const needs = { "elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots" };

// Asks the client, as far as it can be asked.
const ask = (request, inputRequests, state) => {
    for (const asked of Object.values(inputRequests)) {
        const capability = needs[asked.method];
        if (!request.capabilities?.[capability]) {
            throw refuse(-32021, `needs ${capability}`, { requiredCapabilities: { [capability]: {} } });
        }
    }
    const asking = { resultType: "input_required", inputRequests };
    return state === undefined ? asking : { ...asking, requestState: mint(state) };
};
const accepted = (request, key) => {
    const answer = request.answers?.[key];
    return answer?.action === "accept" ? answer.content : undefined;
};

const SCHEMA = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: {
        address: { $anchor: "addressDef", type: "object", properties: { street: word, city: word } },
    },
    properties: {
        name: word,
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: word,
        email: word,
    },
    allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
    if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
    then: { required: ["phone"] },
    else: { required: ["email"] },
    additionalProperties: false,
};

const resource = (uri, mimeType, text) => ({ type: "resource", resource: { uri, mimeType, text } });
const plain = {
    test_simple_text: text("This is a simple text response for testing."),
    test_image_content: { content: [image] },
    test_audio_content: { content: [{ type: "audio", data: SOUND, mimeType: "audio/wav" }] },
    test_embedded_resource: {
        content: [resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
    },
    test_multiple_content_types: {
        content: [
            { type: "text", text: "Multiple content types test:" },
            image,
            resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ],
    },
    test_error_handling: { ...text("This tool intentionally returns an error for testing"), isError: true },
    test_streaming_elicitation: text("nothing is asked"),
    json_schema_2020_12_tool: text("called"),
    test_x_mcp_header: text("called"),
};

const tools = {
    ...Object.fromEntries(Object.entries(plain).map(([name, result]) => [name, () => result])),
    test_tool_with_logging: (request) => {
        for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
            request.log(data);
        }
        return text("Tool with logging executed successfully");
    },
    test_logging_tool: (request) => {
        request.log("told to whoever asked for it");
        return text("logged");
    },
    test_tool_with_progress: (request) => {
        const progressToken = request.meta.progressToken;
        if (progressToken !== undefined) {
            for (const progress of [0, 50, 100]) {
                send({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
            }
        }
        return text("done");
    },
    test_trigger_tool_change: (request) => changed(request, "tools"),
    test_trigger_prompt_change: (request) => changed(request, "prompts"),
    test_missing_capability: (request) =>
        request.answers?.llm_answer ? text("answered") : ask(request, { llm_answer: sample("Reply: pong") }),
    test_sampling: (request) => {
        const answer = request.answers?.llm;
        if (answer) return text(`LLM response: ${answer.content?.text}`);
        return ask(request, { llm: sample(request.given.prompt) });
    },
    test_elicitation: (request) => {
        if (request.answers?.user) return text(`User response: ${told(request.answers.user)}`);
        return ask(request, { user: form(request.given.message, { response: word }) });
    },
    test_elicitation_sep1034_defaults: (request) => formOf(request, "Please review the defaults", DEFAULTS),
    test_elicitation_sep1330_enums: (request) => formOf(request, "Please select options", CHOICES),
    test_input_required_result_elicitation: (request) => {
        const name = accepted(request, "user_name")?.name;
        if (typeof name === "string") return text(`Hello, ${name}!`);
        return ask(request, { user_name: form("What is your name?", { name: word }) });
    },
    test_input_required_result_sampling: (request) => {
        const answer = request.answers?.capital_question;
        if (answer) return text(`Sampling response: ${answer.content?.text}`);
        return ask(request, { capital_question: sample("What is the capital of France?") });
    },
    test_input_required_result_list_roots: (request) => {
        const list = request.answers?.client_roots?.roots;
        return list ? text(`Client exposed ${list.length} root(s)`) : ask(request, { client_roots: roots });
    },
    test_input_required_result_request_state: (request) => {
        if (!accepted(request, "confirm")) return confirm(request, "request_state");
        if (!request.state) throw refuse(-32602, "requestState is missing");
        return text("state-ok: requestState verified and confirmation received");
    },
    test_input_required_result_tampered_state: (request) =>
        request.state && accepted(request, "confirm")
            ? text("integrity-ok: requestState verified")
            : confirm(request, "tampered_state"),
    test_input_required_result_multiple_inputs: (request) => {
        const name = accepted(request, "user_name")?.name;
        const greeting = request.answers?.greeting?.content?.text;
        const list = request.answers?.client_roots?.roots;
        if (name && greeting && list) return text(`${greeting} ${name}: ${list.length} root(s) visible`);
        const user_name = form("What is your name?", { name: word });
        const asked = { user_name, greeting: sample("Generate a greeting"), client_roots: roots };
        return ask(request, asked, { tool: "multiple_inputs" });
    },
    test_input_required_result_multi_round: (request) => {
        const round = request.state?.round ?? 0;
        if (round === 0) {
            return ask(request, { step1: form("Step 1: What is your name?", { name: word }) }, { round: 1 });
        }
        if (round === 1) {
            const name = accepted(request, "step1")?.name;
            const step2 = form("Step 2: What is your favorite color?", { color: word });
            return ask(request, { step2 }, { round: 2, name });
        }
        return text(`Multi-round complete: ${request.state.name} likes ${accepted(request, "step2")?.color}`);
    },
    test_input_required_result_capabilities: (request) => {
        if (request.answers) return text("Capability-aware input requests fulfilled");
        const asked = {};
        if (request.capabilities?.elicitation) asked.user_name = form("What is your name?", { name: word });
        if (request.capabilities?.sampling) asked.greeting = sample("Generate a short greeting");
        if (request.capabilities?.roots) asked.client_roots = roots;
        return Object.keys(asked).length ? ask(request, asked) : text("nobody can be asked");
    },
    greet: ({ given }) => text(`Hello, ${given.name}!`),
    slow_compute: (request) => {
        const { seconds = 0, label } = request.given;
        const result = text(`computed ${label}`);
        return takes(request) ? begin(request, { seconds, end: () => ({ result }) }) : result;
    },
    failing_job: (request) => {
        if (!takes(request)) throw missing(request);
        return begin(request, { seconds: 1, end: () => ({ result: { ...text("it fails"), isError: true } }) });
    },
    protocol_error_job: (request) => {
        const error = { code: -32603, message: "it broke" };
        if (!takes(request)) throw refuse(error.code, error.message);
        return begin(request, { end: () => ({ error }) });
    },
    confirm_delete: (request) => {
        if (!takes(request)) return text("nobody confirms");
        const asks = { confirm: form(`Delete ${request.given.filename}?`, { confirm: { type: "boolean" } }) };
        return begin(request, { asks, end: ({ confirm }) => ({ result: text(told(confirm)) }) });
    },
    multi_input: (request) => {
        if (!takes(request)) return text("nobody is asked");
        const asks = { first: form("The first?", { name: word }), second: form("The second?", { name: word }) };
        return begin(request, { asks, end: ({ first, second }) => ({ result: text(`${told(first)} ${told(second)}`) }) });
    },
    test_tool_with_task: (request) => {
        const name = accepted(request, "user_name")?.name;
        if (typeof name !== "string") {
            return ask(request, { user_name: form("What is your name?", { name: word }) }, { tool: "with_task" });
        }
        if (!takes(request)) throw missing(request);
        return begin(request, { end: () => ({ result: text(`Hello, ${name}!`) }) });
    },
};
const confirm = (request, tool) => {
    const asked = form("Please confirm", { ok: { type: "boolean" } });
    return ask(request, { confirm: asked }, { tool });
};

const told = (answer) => `action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;
const formOf = (request, message, properties) => {
    if (request.answers?.form) return text(`Elicitation completed: ${told(request.answers.form)}`);
    const asked = form(message, properties);
    asked.params.requestedSchema.required = [];
    return ask(request, { form: asked });
};
const DEFAULTS = {
    name: { ...word, default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { ...word, enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
};
const options = ["option1", "option2", "option3"];
const titled = ["First", "Second", "Third"].map((title, index) => ({ const: `value${index + 1}`, title }));
const many = { type: "array", minItems: 1, maxItems: 3 };
const CHOICES = {
    untitledSingle: { ...word, enum: options },
    titledSingle: { ...word, oneOf: titled },
    legacyEnum: { ...word, enum: ["opt1", "opt2"], enumNames: ["Option One", "Option Two"] },
    untitledMulti: { ...many, items: { ...word, enum: options } },
    titledMulti: { ...many, items: { anyOf: titled } },
};

const MIRRORED = { type: "object", properties: { region: { ...word, "x-mcp-header": "Region" } } };
const schemas = { json_schema_2020_12_tool: SCHEMA, test_x_mcp_header: MIRRORED };
const support = {
    slow_compute: "optional",
    failing_job: "required",
    protocol_error_job: "optional",
    confirm_delete: "optional",
    multi_input: "optional",
};
const listed = (isModern) =>
    Object.keys(tools).map((name) => ({
        name,
        description: `the suite's ${name}`,
        inputSchema: schemas[name] ?? { type: "object" },
        ...(!isModern && support[name] && { execution: { taskSupport: support[name] } }),
    }));

// Who listens in the modern era: what each was granted, by the id of its request.
const listening = new Map();
const tell = (id, method, params = {}) =>
    send({ method, params: { ...params, _meta: { [`${META}subscriptionId`]: id } } });
const listen = ({ id, params }) => {
    const granted = params.notifications ?? {};
    listening.set(id, granted);
    tell(id, "notifications/subscriptions/acknowledged", { notifications: granted });
};
const changed = (request, kind) => {
    const method = `notifications/${kind}/list_changed`;
    if (!request.isModern) send({ method });
    for (const [id, granted] of listening) {
        if (granted[`${kind}ListChanged`]) tell(id, method);
    }
    return text("told");
};


const argument = (name) => ({ name, description: `the argument ${name}`, required: true });
const prompts = {
    test_simple_prompt: [[], () => said("This is a simple prompt for testing.")],
    test_prompt_with_arguments: [
        ["arg1", "arg2"],
        ({ given }) => said(`Prompt with arguments: arg1='${given.arg1}', arg2='${given.arg2}'`),
    ],
    test_prompt_with_embedded_resource: [
        ["resourceUri"],
        ({ given }) => {
            const content = resource(given.resourceUri, "text/plain", "Embedded resource content for testing.");
            const { messages } = said("Please process the embedded resource above.");
            return { messages: [{ role: "user", content }, ...messages] };
        },
    ],
    test_prompt_with_image: [
        [],
        () => ({ messages: [{ role: "user", content: image }, ...said("Please analyze the image above.").messages] }),
    ],
    test_input_required_result_prompt: [
        [],
        (request) => {
            const context = accepted(request, "user_context")?.context;
            if (context) return said(`Use the following context: ${context}`);
            return ask(request, { user_context: form("What context should the prompt use?", { context: word }) });
        },
    ],
};

const resources = {
    "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
    "test://static-binary": { mimeType: "image/png", blob: PIXEL },
    "test://watched-resource": { mimeType: "text/plain", text: "Watched resource content" },
};
const read = (uri, isModern) => {
    const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
    const data = { id, templateTest: true, data: `Data for ID: ${id}` };
    const found = id ? { mimeType: "application/json", text: JSON.stringify(data) } : resources[uri];
    if (!found) throw refuse(isModern ? -32602 : -32002, "Resource not found", { uri });
    return { contents: [{ uri, ...found }] };
};

const methods = {
    ...ofTasks,
    initialize: ({ params }) => {
        const capabilities = { ...SERVES, ...SERVES_LEGACY };
        return { protocolVersion: params.protocolVersion, capabilities, serverInfo: INFO };
    },
    "server/discover": () => ({ supportedVersions: ["2026-07-28"], capabilities: { ...SERVES, ...SERVES_MODERN } }),
    ping: () => ({}),
    "logging/setLevel": () => ({}),
    "tools/list": ({ isModern }) => ({ tools: listed(isModern) }),
    "tools/call": (request) => {
        const tool = tools[request.params.name];
        if (!tool) throw refuse(-32602, "no such tool");
        return tool(request);
    },
    "prompts/list": () => {
        const shown = ([name, [names]]) => ({ name, description: `the ${name}`, arguments: names.map(argument) });
        return { prompts: Object.entries(prompts).map(shown) };
    },
    "prompts/get": (request) => {
        const prompt = prompts[request.params.name];
        if (!prompt) throw refuse(-32602, "no such prompt");
        return prompt[1](request);
    },
    "resources/list": () => {
        const shown = ([uri, { mimeType }]) => ({ uri, name: uri.slice(7), mimeType });
        return { resources: Object.entries(resources).map(shown) };
    },
    "resources/templates/list": () => {
        const template = { uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" };
        return { resourceTemplates: [template] };
    },
    "resources/read": ({ params, isModern }) => read(params.uri, isModern),
    "resources/subscribe": () => ({}),
    "resources/unsubscribe": () => ({}),
    "completion/complete": () => ({ completion: { values: ["paris", "park"], total: 2, hasMore: false } }),
};

// In the legacy era we ask by requests of our own, and go on with the answers.
let declared = {};
let asked = 0;
const waiting = new Map();
const askClient = ({ method, params }) =>
    new Promise((resolve, reject) => {
        const id = `question-${++asked}`;
        waiting.set(id, ({ result, error }) => (error ? reject(refuse(-32603, error.message)) : resolve(result)));
        send({ id, method, params });
    });
const resulting = async (method, request) => {
    const result = methods[method](request);
    if (request.isModern || result.resultType !== "input_required") return result;
    const questions = Object.entries(result.inputRequests);
    const answers = await Promise.all(questions.map(async ([key, question]) => [key, await askClient(question)]));
    return resulting(method, { ...request, answers: Object.fromEntries(answers), state: opened(result.requestState) });
};

createInterface({ input: process.stdin }).on("line", async (line) => {
    const message = JSON.parse(line);
    const { id, method, params = {}, ...rest } = message;
    if (method === undefined) {
        const asker = waiting.get(id);
        waiting.delete(id);
        return asker ? asker(rest) : answered(message);
    }
    if (method === "notifications/cancelled") listening.delete(params.requestId);
    if (id === undefined) return;
    if (method === "subscriptions/listen") return listen({ id, params });
    const meta = params._meta ?? {};
    const isModern = `${META}protocolVersion` in meta;
    const isAsked = !isModern || `${META}logLevel` in meta;
    if (method === "initialize") declared = params.capabilities;
    try {
        const isGone = isModern && /^(initialize|ping|logging.*|resources.*subscribe)$/.test(method);
        if (!methods[method] || isGone) throw refuse(-32601, "no such method");
        const request = {
            params,
            meta,
            isModern,
            given: params.arguments ?? {},
            capabilities: isModern ? meta[`${META}clientCapabilities`] : declared,
            answers: params.inputResponses,
            state: opened(params.requestState),
            log: (data) => isAsked && send({ method: "notifications/message", params: { level: "info", data } }),
        };
        const result = await resulting(method, request);
        const said = { [`${META}serverInfo`]: INFO };
        const hints = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
        send({ id, result: isModern ? { ...hints, ...result, _meta: said } : result });
    } catch (error) {
        const { code = -32603, message, data } = error;
        send({ id, error: { code, message, ...(data && { data }) } });
    }
});
