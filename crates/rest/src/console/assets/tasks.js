// The tasks: those of everybody to admins, those of one thread to others.

import { h, put, field } from "./dom.js";
import { get } from "./api.js";
import { problem } from "./ask.js";
import { Table } from "./table.js";
import { badge, count, moment, query, step } from "./words.js";

export const title = "Tasks";

const PAGE = 50;

export function open(context) {
  return context.isAdmin ? everybodys(context) : ofThread(context);
}

function columns(context, isMixed) {
  const href = (row) => `#/task/${step(row.thread_id)}/${step(row.task_id)}${query({ user_id: row.user_id })}`;
  const name = (row) => [row.task_name, h("small", { class: "mono" }, `…${row.task_id.slice(-12)}`)];
  return [
    { title: "Task", cell: (row) => (context.actsFor(row.user_id) ? h("a", { href: href(row) }, name(row)) : name(row)) },
    { title: "State", class: "tight", cell: (row) => [badge(row.status), row.cancel_requested && !isOver(row) ? h("small", {}, "to be cancelled") : null] },
    ...isMixed ? [
      { title: "Server", cell: (row) => row.server },
      { title: "User", cell: (row) => row.user_id },
      { title: "Thread", cell: (row) => h("code", {}, row.thread_id) },
    ] : [],
    { title: "Submitted", class: "tight", cell: (row) => moment(row.created_at) },
    { title: "Changed", class: "tight", cell: (row) => moment(row.updated_at) },
    {
      title: "Error", class: "wide",
      cell: (row) => [row.error ?? "–", row.error_code ? h("small", {}, row.error_code) : null,
        row.tracking_degraded ? h("small", { class: "warn" }, "its server does not answer") : null],
    },
  ];
}

export function isOver(task) {
  return ["completed", "failed", "cancelled"].includes(task.status);
}

function everybodys(context) {
  const control = (kind) => h("input", { type: kind, autocomplete: "off", spellcheck: "false" });
  const [user, thread, server] = [control("search"), control("search"), control("search")];
  const active = h("select", {}, h("option", { value: "" }, "all"), h("option", { value: "true" }, "going on"), h("option", { value: "false" }, "ended"));
  const table = new Table({
    caption: (rows) => `${count(rows.length, "task")}, the newest first`,
    key: (row) => row.task_id,
    empty: () => [h("p", {}, "No task is like this."), h("p", {},
      "A task begins when a tool that starts long work is called: one of “task_toolsets”, or of the protocol’s own.")],
    columns: columns(context, true),
  });
  // Pages after the first one are read once: what is old changes little.
  let older = [];
  let next = null;
  const filter = () => ({ user_id: user.value.trim(), thread_id: thread.value.trim(), server: server.value.trim(), active: active.value, limit: PAGE });
  let first = [];
  const more = h("button", { type: "button" }, "Show older ones");
  const all = () => {
    const known = new Set(first.map((row) => row.task_id));
    return [...first, ...older.filter((row) => !known.has(row.task_id))];
  };
  const fault = h("div", { class: "body" });
  const foot = h("div", { class: "acts" }, more);
  const part = context.part({
    tools: h("div", { class: "filters", role: "search" }, field("State", active), field("User", user), field("Thread", thread), field("Server", server)),
    sections: ["tasks"],
    load: (signal) => get(`api/mcp-tasks${query(filter())}`, signal),
    show: (page, body) => {
      first = page.tasks;
      if (!older.length) next = page.next;
      table.show(all());
      foot.hidden = next === null;
      put(body, [table.element, fault, foot]);
    },
  });
  more.addEventListener("click", async () => {
    more.disabled = true;
    try {
      const page = await get(`api/mcp-tasks${query({ ...filter(), cursor: next })}`, context.signal);
      older.push(...page.tasks);
      next = page.next;
      put(fault, []);
    } catch (error) {
      if (error.name !== "AbortError") put(fault, [problem(error)]);
    } finally {
      more.disabled = false;
    }
    part.refresh();
  });
  const renewed = () => {
    older = [];
    part.refresh();
  };
  for (const one of [user, thread, server, active]) one.addEventListener("change", renewed);
  return { parts: [part], note: "Work that outlives its call. Caribou follows each task to its end." };
}

function ofThread(context) {
  const thread = h("input", { value: context.query.get("thread") ?? "default", pattern: "[A-Za-z0-9_\\-]{1,64}", autocomplete: "off" });
  const table = new Table({
    caption: (rows) => `${count(rows.length, "task")} of this thread, the newest first`,
    key: (row) => row.task_id,
    empty: () => [h("p", {}, "This thread has no tasks."), h("p", {}, "Name another thread above.")],
    columns: columns(context, false),
  });
  const part = context.part({
    tools: h("div", { class: "filters", role: "search" }, field("Thread", thread)),
    sections: ["tasks"],
    load: async (signal) => {
      const name = thread.value.trim() || "default";
      const rows = await get(`api/threads/${step(name)}/mcp-tasks`, signal);
      return rows.map((row) => ({ ...row, thread_id: name, user_id: context.me.user_id }));
    },
    show: (rows, body) => {
      table.show(rows);
      put(body, [table.element]);
    },
  });
  thread.addEventListener("change", () => part.refresh());
  return { parts: [part], note: "Your tasks, thread by thread." };
}
