// The tools: find one.

import { h, put, field } from "./dom.js";
import { get } from "./api.js";
import { Table } from "./table.js";
import { count, step } from "./words.js";

export const title = "Tools";

export function open(context) {
  const search = h("input", { type: "search", value: context.query.get("q"), autocomplete: "off", spellcheck: "false" });
  const server = h("select", {}, h("option", { value: "" }, "all servers"));
  const table = new Table({
    caption: (rows) => count(rows.length, "tool"),
    key: (row) => row.name,
    empty: () => listed?.tools.length
      ? "No tool has these words in its name or description. Try fewer, or all servers."
      : "No server has shown a tool yet. See under Servers how each is.",
    columns: [
      { title: "Tool", cell: (row) => h("a", { href: `#/tool/${step(row.name)}`, class: "mono" }, row.name) },
      { title: "Server", class: "tight", cell: (row) => (row.metadata.deerflow_mcp ? row.server : "Caribou itself") },
      { title: "What it does", class: "wide", cell: (row) => row.tool.description?.split("\n")[0] ?? "–" },
    ],
  });
  let listed = null;
  const show = () => {
    if (!listed) return;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (row) => `${row.name} ${row.tool.title ?? ""} ${row.tool.description ?? ""}`.toLowerCase();
    const isWanted = (row) => (!server.value || row.server === server.value) && words.every((word) => text(row).includes(word));
    table.show(listed.tools.filter(isWanted));
  };
  const fill = () => {
    const names = [...new Set(listed.tools.map((row) => row.server))];
    const wanted = server.options.length > 1 ? server.value : context.query.get("server") ?? "";
    put(server, ["", ...names].map((name) => h("option", { value: name }, name || "all servers")));
    server.value = names.includes(wanted) ? wanted : "";
  };
  const aside = h("div", { class: "body" });
  const part = context.part({
    tools: h("div", { class: "filters", role: "search" }, field("Find", search), field("Server", server)),
    sections: ["servers"],
    load: (signal) => get("api/mcp/tools", signal),
    show: (data, body) => {
      listed = data;
      fill();
      show();
      put(aside, [missing(data)]);
      put(body, [table.element, aside]);
    },
  });
  search.addEventListener("input", show);
  server.addEventListener("change", show);
  return { parts: [part], note: "Everything that can be called by you. Open a tool to try it." };
}

function missing({ pending, failed, denied }) {
  const lines = [
    pending.length ? h("p", {}, `Still being asked: ${pending.join(", ")}.`) : null,
    failed.map(({ server, reason }) => h("p", {}, h("b", {}, server), ` shows none: ${reason}`)),
    denied.length ? h("p", {}, `Denied to everybody by guardrails: ${denied.join(", ")}.`) : null,
  ].flat().filter(Boolean);
  return lines.length ? h("div", { class: "state" }, lines) : null;
}
