// The servers: how each is, and its switch.

import { h, put } from "./dom.js";
import { get, send } from "./api.js";
import { Table } from "./table.js";
import { ask } from "./ask.js";
import { badge, count, era, span, query } from "./words.js";

export const title = "Servers";

export function open(context) {
  let part = null;
  const table = new Table({
    caption: (rows) => `${count(rows.length, "server")}, in the order of the configuration`,
    key: (row) => row.name,
    empty: () => [h("p", {}, "No server is configured."),
      h("p", {}, "Write one into the configuration file, or run “caribou config add”.")],
    columns: [
      { title: "Server", cell: (row) => [row.name, h("small", {}, row.transport ?? "not understood")] },
      {
        title: "State", class: "tight",
        cell: (row) => [badge(row.state), h("small", {}, `for ${span(row.state_age_ms)}`)],
      },
      { title: "Protocol", class: "tight", cell: era },
      {
        title: "Tools", class: "number",
        cell: (row) => [row.tools ? h("a", { href: `#/tools${query({ server: row.name })}` }, row.tools) : "0",
          row.denied ? h("small", {}, `${row.denied} denied`) : null],
      },
      { title: "Sessions", class: "number", cell: (row) => row.sessions },
      { title: context.isAdmin ? "Last error and notes" : "Next try", class: "wide", cell: notes },
      ...context.isAdmin ? [{ title: "Actions", unseen: true, class: "acts", cell: (row) => acts(row, () => part.refresh()) }] : [],
    ],
  });
  part = context.part({
    sections: ["servers", "configuration"],
    load: async (signal) => (await get("api/mcp/servers", signal)).servers,
    show: (rows, body) => {
      table.show(rows);
      put(body, [table.element]);
    },
  });
  return { parts: [part], note: "The MCP servers behind this address, as this replica sees them." };
}

function notes(row) {
  return [
    row.last_error ? h("div", {}, row.last_error) : null,
    row.next_try_ms ? h("small", {}, `Tried again in ${span(row.next_try_ms)}.`) : null,
    row.warnings.map((warning) => h("div", { class: "warn" }, `Note: ${warning}`)),
    row.stderr_tail ? h("details", {}, h("summary", {}, "What it wrote to stderr"), h("pre", {}, row.stderr_tail)) : null,
    !row.last_error && !row.next_try_ms && !row.warnings.length && !row.stderr_tail ? h("span", { class: "off" }, "–") : null,
  ];
}

function acts(row, refresh) {
  if (row.state === "dropped") return h("a", { href: "#/configuration" }, "See the configuration");
  const isOff = row.state === "disabled";
  const label = isOff ? "Switch on" : "Switch off";
  const flip = h("button", {
    type: "button", "aria-label": `${label} ${row.name}`, "data-name": "switch",
    on: { click: () => ask(isOff ? on(row, refresh) : off(row, refresh)) },
  }, label);
  const again = h("button", {
    type: "button", "aria-label": `Ask again, ${row.name}`, "data-name": "again",
    on: { click: () => ask(asked(row, refresh)) },
  }, "Ask again");
  return isOff ? flip : [again, flip];
}

async function flip(row, enabled, refresh) {
  await send("PATCH", "api/mcp/config", { server_name: row.name, enabled });
  // It is switched on whatever comes of asking it now; what does, its row tells.
  if (enabled) await send("POST", "api/mcp/tools/refresh", { server: row.name }).catch(() => {});
  await refresh();
}

function off(row, refresh) {
  return {
    title: `Switch off ${row.name}?`,
    text: row.sessions
      ? `Its tools are gone for everybody, and ${count(row.sessions, "session")} with it ${row.sessions === 1 ? "ends" : "end"}.`
      : "Its tools are gone for everybody.",
    action: "Switch off", danger: true, done: `${row.name} is switched off.`,
    run: () => flip(row, false, refresh),
  };
}

function on(row, refresh) {
  return {
    title: `Switch on ${row.name}?`, text: "Its tools can be called from then on.", action: "Switch on",
    done: `${row.name} is switched on.`, run: () => flip(row, true, refresh),
  };
}

function asked(row, refresh) {
  return {
    title: `Ask ${row.name} for its tools again?`,
    text: "For servers that do not say when their tools change, and for those that failed. Sessions stay.",
    action: "Ask again", done: `${row.name} was asked.`,
    run: async () => {
      await send("POST", "api/mcp/tools/refresh", { server: row.name });
      await refresh();
    },
  };
}
