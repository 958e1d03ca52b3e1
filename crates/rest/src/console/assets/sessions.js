// The live sessions: where each lives, for whom, and since when.

import { h, put, field } from "./dom.js";
import { get, send } from "./api.js";
import { Table } from "./table.js";
import { ask } from "./ask.js";
import { count, era, id, span, step, query } from "./words.js";

export const title = "Sessions";

export function open(context) {
  const search = h("input", { type: "search", autocomplete: "off", spellcheck: "false" });
  let sessions = null;
  let part = null;
  const table = new Table({
    caption: (rows) => `${count(rows.length, "live session")}, the oldest first`,
    key: (row) => [row.server, row.user_id, row.thread_id].join(" "),
    empty: () => (sessions?.length ? "No session has these words. Try fewer." : [h("p", {}, "No session is open."),
      h("p", {}, "One begins with the first call of a tool in a thread. ", h("a", { href: "#/tools" }, "Try a tool"))]),
    columns: [
      { title: "Server", cell: (row) => row.server },
      { title: "User", cell: (row) => row.user_id },
      { title: "Thread", cell: (row) => h("code", {}, row.thread_id) },
      { title: "Epoch", class: "number", cell: (row) => row.epoch },
      { title: "Lives in replica", class: "tight", cell: (row) => [row.host ?? id(row.replica), row.pid ? h("small", {}, `process ${row.pid}`) : null] },
      { title: "Protocol", class: "tight", cell: era },
      { title: "In flight", class: "number", cell: (row) => row.in_flight ?? "–" },
      { title: "Age", class: "number tight", cell: (row) => span(row.age_ms) },
      { title: "Unused for", class: "number tight", cell: (row) => span(row.idle_ms) },
      {
        title: "Actions", unseen: true, class: "acts",
        cell: (row) => (context.actsFor(row.user_id) ? h("button", {
          type: "button", "aria-label": `Close the session of ${row.user_id} with ${row.server} in ${row.thread_id}`,
          "data-name": "close", on: { click: () => ask(closing(row, () => part.refresh())) },
        }, "Close") : null),
      },
    ],
  });
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (row) => `${row.server} ${row.user_id} ${row.thread_id} ${row.host ?? ""} ${row.replica}`.toLowerCase();
    table.show(sessions.filter((row) => words.every((word) => text(row).includes(word))));
  };
  part = context.part({
    tools: h("div", { class: "filters", role: "search" }, field("Find", search)),
    sections: ["sessions", "replicas"],
    load: async (signal) => {
      const replicas = context.isAdmin ? get("api/replicas", signal).catch(() => ({ replicas: [] })) : { replicas: [] };
      const [{ sessions: rows }, { replicas: known }] = await Promise.all([get("api/mcp/sessions", signal), replicas]);
      return rows.map((row) => ({ ...row, host: known.find((replica) => replica.boot === row.replica)?.host }));
    },
    show: (rows, body) => {
      sessions = rows;
      show();
      put(body, [table.element]);
    },
  });
  search.addEventListener("input", () => sessions && show());
  const whose = context.isAdmin ? "of all users" : "that are yours";
  return { parts: [part], note: `Sessions ${whose}, wherever in the cluster they live. Each holds a server’s state for one thread.` };
}

function closing(row, refresh) {
  return {
    title: "Close this session?",
    text: `What ${row.server} keeps for thread ${row.thread_id} of ${row.user_id} is lost, and calls in flight fail. The next call begins another one.`,
    action: "Close it", danger: true, done: (answer) => `${count(answer.closed, "session")} closed.`,
    run: async () => {
      const which = query({ server: row.server, user_id: row.user_id });
      const answer = await send("DELETE", `api/threads/${step(row.thread_id)}/mcp-sessions${which}`);
      await refresh();
      return answer;
    },
  };
}
