// Asks before something is done, and says how it went.

import { h, announce, fresh } from "./dom.js";

/// A problem as people read it.
export function problem(error, again) {
  const box = h("div", { class: "state error" },
    h("b", {}, error.status === 403 ? "You may not do this" : "This did not work"),
    h("p", {}, error.message),
    error.upstream && !error.message.includes(error.upstream.message) ? h("p", {}, `The server says (${error.upstream.code}): ${error.upstream.message}`) : null,
    error.requestId ? h("small", {}, "Request ", h("code", {}, error.requestId), "; the log says more under it.") : null,
    again ? h("button", { type: "button", on: { click: again } }, "Try again") : null);
  return box;
}

/// Opens a dialog: `text` says what will happen, `run` does it, `done` is told afterwards.
export function ask({ title, text, action, danger, run, done }) {
  const heading = fresh("dialog");
  const fault = h("div", { role: "alert" });
  const go = h("button", { class: danger ? "danger" : "main" }, action);
  const stop = h("button", { type: "button", on: { click: () => dialog.close() } }, "Leave it");
  const opener = document.activeElement;
  const submit = async (event) => {
    event.preventDefault();
    go.disabled = true;
    fault.replaceChildren();
    try {
      const answer = await run();
      dialog.close();
      announce(typeof done === "function" ? done(answer) : done);
    } catch (error) {
      fault.replaceChildren(problem(error));
    }
    go.disabled = false;
  };
  const dialog = h("dialog", { "aria-labelledby": heading },
    h("form", { on: { submit } }, h("h2", { id: heading }, title),
      [text].flat().map((line) => h("p", {}, line)), fault, h("div", { class: "acts" }, go, stop)));
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (opener?.isConnected) opener.focus();
    else document.getElementById("main").focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  stop.focus();
}
