// The overview: what needs attention, how much there is, and who takes part.

import { h, put } from "./dom.js";
import { get } from "./api.js";
import { Table } from "./table.js";
import { badge, count, id, span } from "./words.js";

export const title = "Overview";

/// Tasks counted at most: the page of a list.
const TASKS = 100;

export function open(context) {
  const parts = [attention(context), amounts(context)];
  if (context.isAdmin) parts.push(replicas(context));
  return { parts, note: "What this deployment does now. It is read anew as it changes." };
}

/// What `path` answers with; null where this replica has no such thing.
async function maybe(path, signal) {
  try {
    return await get(path, signal);
  } catch (error) {
    if (error.status === 404 || error.code === "unavailable") return null;
    throw error;
  }
}

function attention(context) {
  return context.part({
    title: "Needs attention",
    sections: ["servers", "chains", "configuration", "replicas"],
    load: async (signal) => {
      const admin = context.isAdmin;
      const [servers, health, chains, replicas] = await Promise.all([
        get("api/mcp/servers", signal),
        get("healthz", signal),
        admin ? maybe("api/mcp/oauth", signal) : null,
        admin ? maybe("api/replicas", signal) : null,
      ]);
      return findings(servers.servers, health.stale_config, chains?.chains ?? [], replicas?.replicas ?? []);
    },
    show: (found, body) => put(body, found.length === 0
      ? [h("div", { class: "state calm" }, h("span", { class: "badge good" },
        h("span", { "aria-hidden": "true" }, "●"), "Nothing needs attention."))]
      : [h("ul", { class: "findings" }, found)]),
  });
}

function findings(servers, stale, chains, replicas) {
  const found = [];
  const add = (tone, what, href, why) => found.push(h("li", {},
    h("span", { class: tone, "aria-hidden": "true" }, tone === "bad" ? "▲" : "◆"),
    h("b", {}, href ? h("a", { href }, what) : what), why ? h("p", {}, why) : null));
  if (stale) {
    const first = stale.problems[0];
    const where = first ? ` Line ${first.line}, column ${first.column}: ${first.what}.` : "";
    add("bad", `The stored configuration cannot be used, for ${span(stale.age_ms)}`, "#/configuration",
      `${stale.reason}.${where} The last good one serves on.`);
  }
  for (const server of servers.filter((one) => one.state === "failed" || one.state === "dropped")) {
    const text = server.state === "failed" ? "cannot be used" : "is left out: its configuration is wrong";
    const next = server.next_try_ms ? ` Tried again in ${span(server.next_try_ms)}.` : "";
    add("bad", `Server ${server.name} ${text}`, "#/servers", `${brief(server.last_error)}${next}`);
  }
  for (const server of servers.filter((one) => one.absent === "policy")) {
    add("warn", `All tools of ${server.name} are denied by guardrails`, "#/servers", "See the settings guardrails.");
  }
  for (const chain of chains.filter((one) => one.state === "reauth_needed")) {
    add("bad", `Server ${chain.server} needs a new refresh token`, "#/chains",
      `${chain.last_error ?? ""} Configure another one: its calls fail until then.`);
  }
  for (const replica of replicas.filter((one) => !one.is_alive)) {
    add("warn", `The lease of replica ${replica.host} has ended`, null, "Others take its work over.");
  }
  return found;
}

/// The beginning of a long text: its page has all of it.
function brief(text) {
  if (!text) return "";
  return text.length > 240 ? `${text.slice(0, 240)} …` : text;
}

function amounts(context) {
  return context.part({
    title: "In numbers",
    sections: ["servers", "sessions", "tasks"],
    load: async (signal) => {
      const [servers, sessions, tasks] = await Promise.all([
        get("api/mcp/servers", signal),
        get("api/mcp/sessions", signal),
        context.isAdmin ? maybe(`api/mcp-tasks?active=true&limit=${TASKS}`, signal) : null,
      ]);
      return { servers: servers.servers, sessions: sessions.sessions, tasks: tasks?.tasks };
    },
    show: ({ servers, sessions, tasks }, body) => {
      const ready = servers.filter((server) => server.state === "ready").length;
      const tools = servers.reduce((sum, server) => sum + server.tools, 0);
      const calls = sessions.reduce((sum, session) => sum + (session.in_flight ?? 0), 0);
      const asking = tasks?.filter((task) => task.status === "input_required").length;
      put(body, [h("dl", { class: "tiles" },
        tile("Servers ready", `${ready} of ${servers.length}`, h("a", { href: "#/servers" }, "See all servers")),
        tile("Tools", tools, h("a", { href: "#/tools" }, "Find one and try it")),
        tile(context.isAdmin ? "Live sessions" : "Your live sessions", sessions.length,
          `${count(calls, "call")} in flight`),
        tasks ? tile("Tasks going on", tasks.length === TASKS ? `${TASKS} or more` : tasks.length,
          asking ? h("a", { href: "#/tasks" }, `${asking} ask${asking === 1 ? "s" : ""} a question`)
            : "none asks a question") : null)]);
    },
  });
}

function tile(name, value, more) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value), h("dd", { class: "more" }, more));
}

function replicas(context) {
  const table = new Table({
    caption: (rows) => `${count(rows.length, "replica")} that ${rows.length === 1 ? "shares" : "share"} the database`,
    key: (row) => row.boot,
    empty: () => "No replica is known yet.",
    columns: [
      { title: "Replica", cell: (row) => [row.host, row.is_this ? h("small", {}, "answers this page") : null] },
      { title: "State", cell: (row) => badge(!row.is_alive ? "lease ended" : row.is_draining ? "draining" : "alive") },
      { title: "Version", cell: (row) => row.version },
      { title: "Sessions", class: "number", cell: (row) => row.sessions },
      {
        title: "Load", class: "tight",
        cell: (row) => {
          const percent = Math.round(row.load * 100);
          return [h("meter", { min: 0, max: 1, high: 0.85, value: row.load.toFixed(2), "aria-hidden": "true" }), ` ${percent} %`];
        },
      },
      { title: "Address for the others", cell: (row) => (row.address ? h("code", {}, row.address) : "none") },
      { title: "Since", class: "number tight", cell: (row) => span(row.age_ms) },
      { title: "Life", cell: (row) => id(row.boot) },
    ],
  });
  return context.part({
    title: "Replicas",
    sections: ["replicas", "sessions"],
    load: async (signal) => {
      const [{ replicas }, { sessions }] = await Promise.all([get("api/replicas", signal), get("api/mcp/sessions", signal)]);
      const held = (boot) => sessions.filter((session) => session.replica === boot).length;
      return replicas.map((replica) => ({ ...replica, sessions: held(replica.boot) }));
    },
    show: (rows, body) => {
      table.show(rows);
      put(body, [table.element]);
    },
  });
}
