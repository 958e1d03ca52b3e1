// The tasks of the fixture in both eras: the extension of the modern one, `params.task` and `tasks/result` of revision
// 2025-11-25. A task ends after its time, unless it is cancelled before; one that asks ends when all is answered.
import { randomUUID } from "node:crypto";

const EXTENSION = "io.modelcontextprotocol/tasks";
const RELATED = "io.modelcontextprotocol/related-task";
const EVERY = 200;

const refuse = (code, message, data) => Object.assign(new Error(message), { code, data });
const isOver = (task) => ["completed", "failed", "cancelled"].includes(task.status);

const tasks = new Map();
const waiting = new Map();
let send;

/** Where requests of ours go. */
export const sendBy = (by) => (send = by);

/** Whether the caller of a tool takes a task: it declares the extension, or asks for one. */
export const takes = (request) =>
    request.isModern ? Boolean(request.capabilities?.extensions?.[EXTENSION]) : Boolean(request.params.task);

/** What a tool that must be a task says to whoever takes none. */
export const missing = (request) =>
    request.isModern
        ? refuse(-32021, "needs tasks", { requiredCapabilities: { extensions: { [EXTENSION]: {} } } })
        : refuse(-32601, "call it as a task");

const find = ({ params }) => {
    const task = tasks.get(params.taskId);
    if (!task) throw refuse(-32602, "no such task");
    return task;
};

const move = (task, status, more = {}) => {
    if (isOver(task)) return;
    Object.assign(task, more, { status, lastUpdatedAt: new Date().toISOString() });
    if (isOver(task)) task.told.splice(0).forEach((tell) => tell());
};

const base = ({ taskId, status, createdAt, lastUpdatedAt }, isModern) => ({
    taskId,
    status,
    createdAt,
    lastUpdatedAt,
    ...(isModern ? { ttlMs: null, pollIntervalMs: EVERY } : { ttl: null, pollInterval: EVERY }),
});

/** Begins a task that ends after `seconds` with `end`, or once `asks` is answered with what `end` makes of it. */
export const begin = (request, { seconds = 0, asks, end }) => {
    const now = new Date().toISOString();
    const task = { taskId: randomUUID(), status: "working", createdAt: now, lastUpdatedAt: now, answers: {}, told: [] };
    tasks.set(task.taskId, task);
    task.finish = () => {
        const { result, error } = end(task.answers);
        // A result that says it is an error is a failure in the legacy era.
        const isFailed = error || (!request.isModern && result.isError);
        move(task, isFailed ? "failed" : "completed", { result, error });
    };
    if (asks) move(task, "input_required", { asks });
    else setTimeout(task.finish, seconds * 1_000);
    const made = base(task, request.isModern);
    // A task is made in this state, whatever it is in by now.
    made.status = "working";
    return request.isModern ? { resultType: "task", ...made } : { task: made };
};

const open = (task) => Object.fromEntries(Object.entries(task.asks).filter(([key]) => !(key in task.answers)));
const answer = (task, answers) => {
    for (const [key, given] of Object.entries(answers)) if (key in (task.asks ?? {})) task.answers[key] ??= given;
    if (task.status === "input_required" && Object.keys(open(task)).length === 0) {
        move(task, "working");
        task.finish();
    }
};

// Asks a legacy client all that is open, by requests that name the task.
const askFor = (task) => {
    if (task.status !== "input_required" || task.isAsked) return;
    task.isAsked = true;
    for (const [key, { method, params }] of Object.entries(open(task))) {
        const id = randomUUID();
        waiting.set(id, (given) => answer(task, { [key]: given }));
        send({ id, method, params: { ...params, _meta: { [RELATED]: { taskId: task.taskId } } } });
    }
};

/** Takes an answer to a request of ours. */
export const answered = ({ id, result }) => {
    waiting.get(id)?.(result ?? { action: "cancel" });
    waiting.delete(id);
};

export const methods = {
    "tasks/get": (request) => {
        const task = find(request);
        const shown = base(task, request.isModern);
        if (!request.isModern) return shown;
        const { asks, result, error } = task;
        return { ...shown, ...(task.status === "input_required" ? asks && { inputRequests: open(task) } : { result, error }) };
    },
    "tasks/update": (request) => {
        answer(find(request), request.params.inputResponses ?? {});
        return {};
    },
    "tasks/cancel": (request) => {
        const task = find(request);
        if (!request.isModern && isOver(task)) throw refuse(-32602, "it has ended");
        move(task, "cancelled");
        return request.isModern ? {} : base(task, false);
    },
    "tasks/result": async (request) => {
        const task = find(request);
        askFor(task);
        if (!isOver(task)) await new Promise((tell) => task.told.push(tell));
        const { result, error } = task;
        if (!result) throw refuse(error?.code ?? -32603, error?.message ?? "there is no result");
        return { ...result, _meta: { ...result._meta, [RELATED]: { taskId: task.taskId } } };
    },
};

/** What `initialize` and `server/discover` say of tasks. */
export const SERVES_LEGACY = { tasks: { cancel: {}, requests: { tools: { call: {} } } } };
export const SERVES_MODERN = { extensions: { [EXTENSION]: {} } };
