// One task: how it is, what it asks, what happened to it; cancel it, or answer it.

import { h, put, announce } from "./dom.js";
import { follow, get, send } from "./api.js";
import { ask, problem } from "./ask.js";
import { formOf } from "./form.js";
import { pretty } from "./json.js";
import { badge, moment, query, step } from "./words.js";
import { isOver } from "./tasks.js";

export const title = "Task";

export function open(context) {
  const [thread, name] = context.rest;
  const whose = query({ user_id: context.query.get("user_id") });
  const at = `api/threads/${step(thread)}/mcp-tasks/${step(name)}`;
  const where = { at, whose };
  let question = null;
  const asked = h("div", { class: "body" });
  const facts = context.part({
    title: "How it is",
    sections: ["tasks"],
    load: (signal) => get(`${at}${whose}`, signal),
    show: (task, body) => {
      put(body, [describe(task), outcome(task), act(task, where, () => facts.refresh())]);
      // What a person is writing must not go away under their hands.
      const text = task.input_required && !task.waiting_answers ? JSON.stringify(task.input_required) : null;
      if (text !== question) {
        question = text;
        asked.replaceChildren(...text === null ? [] : questions(task.input_required, where, () => facts.refresh()));
        if (text !== null) announce("The task asks a question.");
      }
    },
  });
  const events = context.part({
    title: "What happened",
    sections: ["tasks"],
    load: async (signal) => (await get(`${at}/events${whose}`, signal)).events,
    show: (rows, body) => put(body, [h("ol", { class: "steps" }, rows.map((row) =>
      h("li", {}, moment(row.at), badge(row.status))))]),
  });
  // Also where the page is not told of everybody's tasks.
  follow("GET", `${at}/events${whose}`, { signal: context.signal }, () => {
    facts.refresh();
    events.refresh();
  }).catch(() => { /* What is wrong, the parts say. */ });
  return { title: `Task …${name.slice(-12)}`, parts: [facts, asked, events], back: h("a", { href: "#/tasks" }, "← All tasks") };
}

function describe(task) {
  const row = (name, value) => (value == null || value === "" ? null : [h("dt", {}, name), h("dd", {}, value)]);
  return h("dl", { class: "facts" },
    row("State", [badge(task.status), task.error_code ? ` (${task.error_code})` : "",
      task.cancel_requested && !isOver(task) ? ", to be cancelled" : ""]),
    row("Made by", task.task_name),
    row("Name", h("code", {}, task.task_id)),
    row("Submitted", moment(task.created_at)),
    row("Changed", moment(task.updated_at)),
    row("Its server last said how it is", task.last_polled_at && moment(task.last_polled_at)),
    row("Error", task.error),
    row("It could not be asked", task.last_poll_error),
    row("It could not be cancelled", task.last_cancel_error),
    row("An answer was not taken", task.last_answer_error),
    row("Answers on their way", task.waiting_answers),
    row("Its newest event is", task.notification_status === "none" ? null : task.notification_status),
    row("That failed with", task.notification_error));
}

function outcome(task) {
  const text = task.result === null ? task.result_preview : typeof task.result === "string" ? task.result : pretty(JSON.stringify(task.result));
  const lies = task.result_artifact;
  if (text === null && !lies) return null;
  return h("div", { class: "body" }, h("h3", {}, task.result_truncated ? "The beginning of its result, which is too large to be kept" : "Result"),
    text === null ? null : h("pre", { tabindex: "0", "aria-label": "Result" }, text),
    lies ? h("p", {}, "It lies at ", h("code", {}, lies.uri), lies.mime_type ? ` (${lies.mime_type})` : "") : null);
}

function act(task, { at, whose }, refresh) {
  if (isOver(task) || task.cancel_requested) return null;
  const cancel = () => ask({
    title: "Cancel this task?", text: "Its server is told so until it says how the task ended. What it did already stays.",
    action: "Cancel the task", danger: true, done: "The task is to be cancelled.",
    run: async () => {
      await send("POST", `${at}/cancel${whose}`);
      await refresh();
    },
  });
  return h("div", { class: "acts" }, h("button", { type: "button", class: "danger", on: { click: cancel } }, "Cancel the task"));
}

/// A form for each thing that is asked.
function questions(input, where, refresh) {
  const requests = input.inputRequests;
  const named = requests && typeof requests === "object" ? Object.entries(requests) : [];
  if (named.length) {
    return named.map(([name, request]) => question({
      name, text: request.params?.message, schema: request.params?.requestedSchema, where, refresh, isOfProtocol: true,
    }));
  }
  return [question({ text: input.prompt ?? input.message, schema: input.schema ?? input.requestedSchema, where, refresh })];
}

function question({ name, text, schema, where, refresh, isOfProtocol }) {
  const fields = formOf(schema ?? { type: "object" });
  const fault = h("div", { role: "alert" });
  const go = h("button", { class: "main" }, "Send the answer");
  // An answer has a name, so that sending it twice changes nothing.
  const own = name ?? `console-${[...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16)).join("")}`;
  const tell = async (answer) => {
    go.disabled = true;
    fault.replaceChildren();
    try {
      await send("POST", `${where.at}/input${where.whose}`, `{"input_id":${JSON.stringify(own)},"answers":${answer}}`);
      announce("The answer is sent.");
      await refresh();
      document.getElementById("title").focus();
    } catch (error) {
      fault.replaceChildren(problem(error));
    }
    go.disabled = false;
  };
  const submit = (event) => {
    event.preventDefault();
    tell(isOfProtocol ? `{"action":"accept","content":${fields.read()}}` : fields.read());
  };
  const decline = () => tell("{\"action\":\"decline\"}");
  return h("form", { class: "card", on: { submit }, "aria-label": "Answer the task" },
    h("h2", {}, "It asks"), h("p", {}, text ?? "It waits for an answer, and says no more."), fields.element, fault,
    h("div", { class: "acts" }, go, isOfProtocol ? h("button", { type: "button", on: { click: decline } }, "Decline") : null));
}
