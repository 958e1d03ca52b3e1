// The audit log, page by page.

import { h, put, field } from "./dom.js";
import { get } from "./api.js";
import { Table } from "./table.js";
import { badge, count, id, moment, query } from "./words.js";

export const title = "Audit log";

const FILTERS = [
  ["principal", "Who asked", "The id of a key, the subject of a token, or “local”."], ["user_id", "For user"],
  ["server", "Server"], ["tool", "Tool"], ["outcome", "Outcome", "“ok”, “denied”, “timeout” and so on."],
];

export function open(context) {
  const controls = FILTERS.map(([name, label, hint]) => ({
    name, label, control: h("input", { type: "search", autocomplete: "off", spellcheck: "false", title: hint }),
  }));
  const table = new Table({
    caption: (rows) => `${count(rows.length, "row")}, the newest first${trail.length ? `, page ${trail.length + 1}` : ""}`,
    key: (row) => row.id,
    empty: () => [h("p", {}, "No row is like this."), h("p", {}, "Rows appear a moment after what they tell of. Empty the filters to see all.")],
    columns: [
      { title: "Ended", class: "tight", cell: (row) => moment(row.at_ms) },
      { title: "Who", class: "tight", cell: (row) => [row.principal, row.user_id && row.user_id !== row.principal ? h("small", {}, `for ${row.user_id}`) : null] },
      { title: "What", class: "tight", cell: (row) => row.action.replaceAll("_", " ") },
      { title: "With", cell: (row) => [row.tool || row.server || "–", row.tool && row.server ? h("small", {}, row.server) : null] },
      { title: "Outcome", class: "tight", cell: (row) => badge(row.outcome, row.outcome === "ok" ? "good" : row.outcome === "cancelled" ? "off" : "bad") },
      { title: "Took", class: "number tight", cell: (row) => `${row.duration_ms} ms` },
      { title: "Thread", cell: (row) => (row.thread_id ? h("code", {}, row.thread_id) : "–") },
      { title: "Door", cell: (row) => row.door },
      { title: "Request", cell: (row) => id(row.request_id) },
    ],
  });
  /// Where the pages before this one began.
  let trail = [];
  let before = null;
  let next = null;
  const newer = h("button", { type: "button", on: { click: () => turn(() => { before = trail.pop() ?? null; }) } }, "Newer rows");
  const older = h("button", { type: "button", on: { click: () => turn(() => { trail.push(before); before = next; }) } }, "Older rows");
  const foot = h("div", { class: "acts" }, newer, older);
  const turn = (how) => {
    how();
    part.refresh();
  };
  const part = context.part({
    tools: h("div", { class: "filters", role: "search" }, controls.map(({ label, control }) => field(label, control))),
    sections: ["audit"],
    load: (signal) => {
      const values = Object.fromEntries(controls.map(({ name, control }) => [name, control.value.trim()]));
      return get(`api/mcp/audit${query({ ...values, before })}`, signal);
    },
    show: (page, body) => {
      next = page.next;
      table.show(page.rows);
      newer.disabled = trail.length === 0;
      older.disabled = next === null;
      foot.hidden = newer.disabled && older.disabled;
      put(body, [table.element, foot]);
    },
  });
  const renewed = () => turn(() => { trail = []; before = null; });
  for (const { control } of controls) control.addEventListener("change", renewed);
  return { parts: [part], note: context.isAdmin ? "Who did what, or was refused." : "What you did, and what was done for you." };
}
