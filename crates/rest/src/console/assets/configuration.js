// The stored configuration, its history, and the reset of everything.

import { h, put } from "./dom.js";
import { get, read, send } from "./api.js";
import { Table } from "./table.js";
import { ask, problem } from "./ask.js";
import { pretty } from "./json.js";
import { count, moment } from "./words.js";

export const title = "Configuration";
export const admins = true;

export function open(context) {
  const stored = current(context);
  return {
    parts: [stored, history(context, stored), resets()],
    note: "The servers as they are stored. Secrets are shown as ***; change servers with “caribou config”, or switch them under Servers.",
  };
}

function document_(name, text) {
  return h("pre", { tabindex: "0", "aria-label": name }, text);
}

function current(context) {
  const part = context.part({
    title: "In force",
    sections: ["configuration"],
    load: async (signal) => {
      const [{ text, tag }, health] = await Promise.all([read("api/mcp/config", signal), get("healthz", signal)]);
      return { text, tag, stale: health.stale_config };
    },
    show: ({ text, tag, stale }, body) => {
      part.tag = tag;
      const { mcp_servers: servers, pending_restart: pending = [] } = JSON.parse(text);
      put(body, [
        stale ? h("div", { class: "state error" }, h("b", {}, "What is stored cannot be used; the last good one serves on"),
          h("p", {}, stale.reason), stale.problems.map((one) => h("p", {}, `${one.file}, line ${one.line}, column ${one.column}: ${one.what}`))) : null,
        pending.length ? h("div", { class: "state" }, h("p", {}, `Restart this replica to use what is stored of ${pending.join(", ")}: their tasks go on under the old state.`)) : null,
        Object.keys(servers).length
          ? h("details", {}, h("summary", {}, `Show ${count(Object.keys(servers).length, "server")}`), document_("The stored servers", pretty(text)))
          : h("div", { class: "state" }, "No server is stored. “caribou config add” stores one."),
      ]);
    },
  });
  return part;
}

function history(context, stored) {
  let newest = null;
  const table = new Table({
    caption: (rows) => `${count(rows.length, "revision")}, the last one first`,
    key: (row) => row.revision,
    empty: () => "Nothing was stored yet.",
    columns: [
      { title: "Revision", cell: (row) => [row.revision, row.revision === newest ? h("small", {}, "in force") : null] },
      { title: "Written by", cell: (row) => row.author },
      { title: "When", class: "tight", cell: (row) => moment(row.at_ms) },
      { title: "Size", class: "number tight", cell: (row) => `${row.bytes} bytes` },
      {
        title: "Actions", unseen: true, class: "acts",
        cell: (row) => [
          h("button", { type: "button", "aria-label": `See revision ${row.revision}`, "data-name": "see", on: { click: () => see(row.revision) } }, "See"),
          row.revision === newest ? null : h("button", {
            type: "button", class: "danger", "aria-label": `Roll back to revision ${row.revision}`, "data-name": "back",
            on: { click: () => ask(rolling(row.revision)) },
          }, "Roll back"),
        ],
      },
    ],
  });
  const seen = h("div", { class: "body", "aria-live": "polite" });
  const see = async (revision) => {
    try {
      const { text } = await read(`api/mcp/config/history/${revision}`, context.signal);
      seen.replaceChildren(h("h3", {}, `Revision ${revision}`), document_(`Revision ${revision}`, pretty(text)));
    } catch (error) {
      if (error.name !== "AbortError") seen.replaceChildren(problem(error));
    }
  };
  const rolling = (revision) => ({
    title: `Roll back to revision ${revision}?`,
    text: "It is stored again as the next revision, on all replicas. Sessions of servers that it changes end.",
    action: "Roll back", danger: true, done: `Revision ${revision} is in force again.`,
    run: async () => {
      // Only over what this page has shown.
      await send("POST", "api/mcp/config/rollback", { revision }, stored.tag ? { "If-Match": stored.tag } : {});
      await Promise.all([stored.refresh(), part.refresh()]);
    },
  });
  const part = context.part({
    title: "History",
    sections: ["configuration"],
    load: async (signal) => {
      try {
        return (await get("api/mcp/config/history", signal)).revisions;
      } catch (error) {
        if (error.status === 404) return null;
        throw error;
      }
    },
    show: (rows, body) => {
      if (rows === null) {
        put(body, [h("div", { class: "state" }, h("p", {}, "The configuration is a file, which has no history here."),
          h("p", {}, "With “config.source: database” each change is kept and can be taken back."))]);
        return;
      }
      newest = rows[0]?.revision ?? null;
      table.show(rows);
      put(body, [table.element, seen]);
    },
  });
  return part;
}

function resets() {
  const outcome = h("div", { class: "body" });
  const reset = () => ask({
    title: "Reset everything?",
    text: "Every session of every user is closed, and what servers kept for them is lost. Servers are asked anew for their tools.",
    action: "Reset", danger: true,
    run: async () => {
      const answer = await send("POST", "api/mcp/cache/reset");
      outcome.replaceChildren(told(answer));
      return answer;
    },
    done: (answer) => `It is reset: ${count(answer.confirmed.length, "replica")} confirmed.`,
  });
  return h("section", { class: "part", "aria-labelledby": "reset" },
    h("h2", { id: "reset" }, "Reset"),
    h("p", { class: "faint" }, "When servers must begin anew, such as after a change of the environment. One server alone is asked again under Servers."),
    h("div", { class: "acts" }, h("button", { type: "button", class: "danger", on: { click: reset } }, "Reset everything")),
    outcome);
}

function told(answer) {
  const reach = { process: "this replica alone", directory: "everybody who follows the same file", cluster: "every replica of the cluster" };
  return h("div", { class: "state calm" },
    h("p", {}, `It reaches ${reach[answer.reach] ?? answer.reach}. ${count(answer.confirmed.length, "replica")} confirmed it.`),
    answer.unconfirmed.length ? h("p", {}, `Not confirmed yet: ${answer.unconfirmed.join(", ")}.`) : null);
}
