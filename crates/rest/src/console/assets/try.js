// One tool: what it says of itself, and a call of it.

import { h, put, field, announce } from "./dom.js";
import { follow, read } from "./api.js";
import { problem } from "./ask.js";
import { formOf } from "./form.js";
import { member, pretty } from "./json.js";
import { span, step, query } from "./words.js";

export const title = "Tool";

/// Between two reports that are read aloud: a server may send hundreds.
const SPOKEN_EVERY = 3000;

export function open(context) {
  const [name] = context.rest;
  let isMade = false;
  const part = context.part({
    load: async (signal) => {
      const { text } = await read("api/mcp/tools", signal);
      const found = JSON.parse(text).tools.find((tool) => tool.name === name);
      return { found };
    },
    show: ({ found }, body) => {
      if (isMade) return;
      isMade = true;
      put(body, found ? [description(found), caller(context, found)] : [h("div", { class: "state" },
        h("p", {}, "There is no tool of this name, or you may not use it."), h("a", { href: "#/tools" }, "See all tools"))]);
    },
  });
  return { title: name, parts: [part], back: h("a", { href: "#/tools" }, "← All tools") };
}

function description(entry) {
  const { tool } = entry;
  const hints = Object.entries({
    readOnlyHint: "only reads", destructiveHint: "may destroy", idempotentHint: "may be repeated", openWorldHint: "reaches out",
  }).filter(([hint]) => tool.annotations?.[hint] === true).map(([, word]) => word);
  return h("dl", { class: "facts" },
    h("dt", {}, "Server"), h("dd", {}, entry.server),
    h("dt", {}, "Its own name"), h("dd", {}, h("code", {}, entry.raw_name)),
    tool.description ? [h("dt", {}, "What it does"), h("dd", {}, tool.description)] : null,
    hints.length ? [h("dt", {}, "It says that it"), h("dd", {}, hints.join(", "))] : null,
    h("dt", {}, "Schema"), h("dd", {}, h("details", {}, h("summary", {}, "Show the schema of its arguments"),
      h("pre", { tabindex: "0", "aria-label": "Schema" }, pretty(JSON.stringify(tool.inputSchema ?? {}))))));
}

/// The form, and what came back.
function caller(context, entry) {
  const fields = formOf(entry.tool.inputSchema);
  const thread = h("input", { value: "console", pattern: "[A-Za-z0-9_\\-]{1,64}", autocomplete: "off" });
  const user = h("input", { placeholder: context.me.user_id, maxlength: 256, autocomplete: "off" });
  const go = h("button", { class: "main" }, "Call it");
  const stop = h("button", { type: "button", hidden: true }, "Cancel");
  const outcome = h("section", { class: "part", "aria-label": "Outcome" });
  const form = h("form", { class: "card", "aria-label": `Call ${entry.name}` },
    fields.element,
    h("fieldset", {}, h("legend", {}, "In which session"), h("div", { class: "pair" },
      field("Thread", thread, { required: true, note: "A stateful server keeps one state a thread." }),
      context.actsFor("") ? field("User", user, { note: "Empty: yourself." }) : null)),
    h("div", { class: "acts" }, go, stop));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = `{"name":${JSON.stringify(entry.name)},"arguments":${fields.read()},` +
      `"thread_id":${JSON.stringify(thread.value)}${user.value ? `,"user_id":${JSON.stringify(user.value)}` : ""}}`;
    const call = new AbortController();
    const cancel = () => call.abort();
    context.signal.addEventListener("abort", cancel);
    stop.onclick = cancel;
    go.disabled = true;
    stop.hidden = false;
    await run(body, call.signal, outcome, { thread: thread.value, user: user.value || context.me.user_id });
    context.signal.removeEventListener("abort", cancel);
    go.disabled = false;
    if (document.activeElement === stop) go.focus();
    stop.hidden = true;
  });
  return h("div", { class: "body" }, h("h2", {}, "Try it"), form, outcome);
}

async function run(body, signal, outcome, scope) {
  const begun = performance.now();
  const bar = h("progress", { "aria-label": "Progress of the call" });
  const line = h("p", { class: "faint" }, "The call is under way.");
  outcome.replaceChildren(h("div", { class: "body" }, bar, line));
  announce("The call is under way.");
  let spoken = begun;
  const heard = (text) => {
    line.textContent = text;
    if (performance.now() - spoken > SPOKEN_EVERY) {
      spoken = performance.now();
      announce(text);
    }
  };
  const done = (nodes, said) => {
    outcome.replaceChildren(...nodes.flat(9).filter(Boolean));
    announce(said);
  };
  let isAnswered = false;
  try {
    await follow("POST", "api/mcp/tools/call", { body, signal }, (name, data) => {
      const took = span(performance.now() - begun);
      if (name === "progress") {
        const { progress, total, message } = JSON.parse(data);
        if (total) { bar.max = total; bar.value = progress; }
        heard(message ?? (total ? `${progress} of ${total}` : String(progress)));
      } else if (name === "message") {
        const { data: said } = JSON.parse(data);
        heard(typeof said === "string" ? said : JSON.stringify(said));
      } else if (name === "result") {
        isAnswered = true;
        const answer = JSON.parse(data);
        done(answered(data, answer, took, scope),
          answer.result.isError ? "The tool reports an error." : `The tool has answered after ${took}.`);
      } else if (name === "error") {
        isAnswered = true;
        const told = JSON.parse(data);
        const error = { message: told.detail, requestId: told.request_id, upstream: told.upstream, status: told.code === "denied" ? 403 : 0 };
        done([problem(error)], `The call failed: ${told.detail}`);
      }
    });
    if (!isAnswered) done([problem({ message: "The answer broke off. The call may have had effects." })], "The answer broke off.");
  } catch (error) {
    if (error.name === "AbortError") done([h("div", { class: "state" }, "You cancelled the call. It may have had effects.")], "The call is cancelled.");
    else done([problem(error)], `The call failed: ${error.message}`);
  }
}

/// The answer, as text whatever it holds.
function answered(data, answer, took, scope) {
  const { result, session } = answer;
  const whole = member(data, "result") ?? "{}";
  const structured = member(whole, "structuredContent");
  const texts = (result.content ?? []).map((block) => (block.type === "text"
    ? h("pre", { tabindex: "0", "aria-label": "Text" }, block.text)
    : h("p", { class: "state" }, other(block))));
  const task = result.structuredContent?.task_id;
  const isTask = typeof task === "string" && task.startsWith("mcp-task-");
  const href = isTask ? `#/task/${step(scope.thread)}/${step(task)}${query({ user_id: scope.user })}` : null;
  return [
    h("div", { class: "part-head" },
      h("h2", {}, result.isError ? h("span", { class: "bad" }, "▲ The tool reports an error") : "Answer"),
      h("span", { class: "faint" }, `after ${took}`,
        session ? ` · session of ${session.server}, epoch ${session.epoch}${session.restarted ? ", begun anew" : ""}` : "")),
    isTask ? h("div", { class: "state calm" }, h("p", {}, "Caribou follows this as a task."), h("a", { href }, "Open the task")) : null,
    texts,
    structured ? h("div", { class: "body" }, h("h3", {}, "Structured"), h("pre", { tabindex: "0", "aria-label": "Structured content" }, pretty(structured))) : null,
    h("details", {}, h("summary", {}, "Everything that came back"), h("pre", { tabindex: "0", "aria-label": "Everything that came back" }, pretty(data))),
  ];
}

function other(block) {
  const size = block.data ? `, ${Math.floor(block.data.length * 0.75)} bytes` : "";
  return `A part of kind ${block.type}${block.mimeType ? `, ${block.mimeType}` : ""}${size}. All of it stands below.`;
}
