// The entrance, where a replica tells callers apart.

import { h, field } from "./dom.js";
import { present } from "./api.js";

/// The form that asks for a key; `entered` goes on.
export function entrance(why, entered) {
  const key = h("input", { type: "password", autocomplete: "off", spellcheck: "false", name: "credential" });
  const keep = h("input", { type: "checkbox", name: "keep" });
  const submit = (event) => {
    event.preventDefault();
    const text = key.value.trim();
    if (text === "") return key.focus();
    present(text, keep.checked);
    entered();
  };
  const note = "Made by “caribou keys create”, or a token of your issuer. It stays in this page and is sent to this " +
    "replica alone.";
  const box = h("form", { class: "card entrance", on: { submit } },
    h("h1", { tabindex: "-1" }, "Who are you?"),
    why === "refused"
      ? h("p", { role: "alert", class: "bad" }, "The key was not accepted: it is nobody’s, has expired or was revoked.")
      : h("p", { class: "faint" }, "This replica tells callers apart."),
    field("API key or token", key, { note, required: true }),
    h("label", { class: "check" }, keep, "Keep it until this tab is closed"),
    h("div", { class: "acts" }, h("button", { class: "main" }, "Continue")));
  return { element: box, first: key };
}
