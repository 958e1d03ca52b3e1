// The chains of refresh tokens: how each is; never a token.

import { h, put } from "./dom.js";
import { get, send } from "./api.js";
import { Table } from "./table.js";
import { ask } from "./ask.js";
import { badge, count, id, moment, span, step } from "./words.js";

export const title = "Token chains";
export const admins = true;

export function open(context) {
  let part = null;
  const empty = () => [h("p", {}, "No chain of refresh tokens is stored."),
    h("p", {}, "One begins with the first call of a server whose “oauth” has the grant “refresh_token”.")];
  const table = new Table({
    caption: (rows) => count(rows.length, "chain"),
    key: (row) => row.server,
    empty,
    columns: [
      { title: "Server", cell: (row) => row.server },
      { title: "State", class: "tight", cell: (row) => [state(row), row.holder ? h("small", {}, "by ", id(row.holder)) : null] },
      { title: "Generation", class: "number", cell: (row) => [row.generation, h("small", {}, row.rotates ? "rotates" : "was not seen to rotate")] },
      { title: "Access token lives for", class: "number tight", cell: (row) => (row.access_expires_in_ms == null ? "none lives" : span(row.access_expires_in_ms)) },
      { title: "Changed", class: "tight", cell: (row) => moment(row.changed_at_ms) },
      {
        title: "Last error", class: "wide",
        cell: (row) => [row.last_error ?? "–", row.failures ? h("small", {}, `${count(row.failures, "failure")} in a row`) : null,
          row.next_try_ms ? h("small", {}, `Tried again in ${span(row.next_try_ms)}.`) : null],
      },
      { title: "Actions", unseen: true, class: "acts", cell: (row) => acts(row, () => part.refresh()) },
    ],
  });
  part = context.part({
    sections: ["chains"],
    load: async (signal) => {
      try {
        return (await get("api/mcp/oauth", signal)).chains;
      } catch (error) {
        // A replica without a database stores none.
        if (error.status === 404) return [];
        throw error;
      }
    },
    show: (rows, body) => {
      table.show(rows);
      put(body, [table.element]);
    },
  });
  return { parts: [part], note: "Rotating OAuth refresh tokens, one chain a server, each token spent once in the whole cluster." };
}

function state(row) {
  // Here “unknown” means that an answer was lost, which somebody should see.
  return row.state === "unknown" ? badge("unknown", "warn", "an answer was lost") : badge(row.state);
}

function acts(row, refresh) {
  const renew = () => ask({
    title: `Ask for another access token of ${row.server}?`,
    text: "The refresh token is presented once; its successor takes its place.",
    action: "Refresh", done: `${row.server} has a new token.`,
    run: async () => {
      await send("POST", `api/mcp/oauth/${step(row.server)}/refresh`);
      await refresh();
    },
  });
  const forget = () => ask({
    title: `Forget the chain of ${row.server}?`,
    text: "The next token is asked for with the refresh token of the configuration. If its provider rotates and that one is spent, a person must configure another.",
    action: "Forget it", danger: true, done: `The chain of ${row.server} is forgotten.`,
    run: async () => {
      await send("DELETE", `api/mcp/oauth/${step(row.server)}`);
      await refresh();
    },
  });
  return [
    h("button", { type: "button", "aria-label": `Refresh the token of ${row.server}`, "data-name": "refresh", on: { click: renew } }, "Refresh"),
    h("button", { type: "button", class: "danger", "aria-label": `Forget the chain of ${row.server}`, "data-name": "forget", on: { click: forget } }, "Forget"),
  ];
}
