// The frame around the pages: which one is shown, who looks, and what is read anew.

import { h, put, fresh } from "./dom.js";
import { get, hasCredential, present, whenAsked } from "./api.js";
import { entrance } from "./credential.js";
import { listen } from "./live.js";
import { problem } from "./ask.js";
import { badge } from "./words.js";
import * as overview from "./overview.js";
import * as servers from "./servers.js";
import * as tools from "./tools.js";
import * as one from "./try.js";
import * as sessions from "./sessions.js";
import * as tasks from "./tasks.js";
import * as task from "./task.js";
import * as chains from "./chains.js";
import * as audit from "./audit.js";
import * as configuration from "./configuration.js";

/// In the order of the list; those with `within` are reached from another one.
const PAGES = [
  { path: "", page: overview },
  { path: "servers", page: servers },
  { path: "tools", page: tools },
  { path: "tool", page: one, within: "tools" },
  { path: "sessions", page: sessions },
  { path: "tasks", page: tasks },
  { path: "task", page: task, within: "tasks" },
  { path: "chains", page: chains },
  { path: "audit", page: audit },
  { path: "configuration", page: configuration },
];

const main = document.getElementById("main");
let me = null;
let leave = null;
let shown = null;
let isFirst = true;

const isAdmin = () => me?.roles.includes("admin") ?? false;

/// One part of a page: read, shown, and read anew when what it is about changes.
class Part {
  constructor(context, { title, note, sections = [], load, show, tools }) {
    const heading = fresh("part");
    this.sections = sections;
    this.load = load;
    this.showIt = show;
    this.signal = context.signal;
    this.state = h("div", { class: "body" });
    this.body = h("div", { class: "body" });
    this.element = h("section", { class: "part", "aria-labelledby": title ? heading : "title" },
      title ? h("div", { class: "part-head" }, h("h2", { id: heading }, title), tools) : tools,
      note ? h("p", { class: "faint" }, note) : null,
      this.state, this.body);
  }

  /// Reads and shows; one at a time, and once more when something changed meanwhile.
  async refresh() {
    if (this.running) {
      this.again = true;
      return this.running;
    }
    this.running = this.turn();
    await this.running;
    this.running = null;
    if (this.again && !this.signal.aborted) {
      this.again = false;
      await this.refresh();
    }
  }

  async turn() {
    const waiting = this.isShown ? 0 : setTimeout(() => {
      put(this.state, [h("div", { class: "state", "aria-busy": "true" }, "Reading …")]);
    }, 150);
    try {
      const data = await this.load(this.signal);
      if (this.signal.aborted) return;
      this.showIt(data, this.body);
      this.isShown = true;
      put(this.state, []);
    } catch (error) {
      if (this.signal.aborted || error.name === "AbortError" || error.status === 401) return;
      put(this.state, [problem(error, () => this.refresh())]);
    } finally {
      clearTimeout(waiting);
    }
  }
}

/// What a page is given.
function contextOf(signal, parts) {
  return {
    me,
    isAdmin: isAdmin(),
    /// Whether the caller may act for this user.
    actsFor: (user) => me.roles.includes("agent") || user === me.user_id,
    signal,
    part(what) {
      const part = new Part(this, what);
      parts.push(part);
      return part;
    },
  };
}

function route() {
  const [path, ...rest] = location.hash.replace(/^#\/?/, "").split("?")[0].split("/").map(decodeURIComponent);
  const found = PAGES.find((one) => one.path === path);
  return { found, rest, query: new URLSearchParams(location.hash.split("?")[1] ?? "") };
}

function open() {
  leave?.abort();
  leave = new AbortController();
  const { found, rest, query } = route();
  const parts = [];
  const context = { ...contextOf(leave.signal, parts), rest, query };
  navigation(found?.within ?? found?.path);
  const page = found && (!found.page.admins || isAdmin()) ? found.page : nowhere(found);
  const made = page.open(context);
  const title = made.title ?? page.title;
  document.title = `${title} · Caribou`;
  const heading = h("h1", { id: "title", tabindex: "-1" }, title);
  main.replaceChildren(
    h("div", { class: "top" }, h("div", {}, made.back, heading, made.note ? h("p", {}, made.note) : null), made.tools),
    ...made.parts.map((part) => part.element ?? part));
  window.scrollTo(0, 0);
  // The first page is begun at its top; afterwards whoever followed a link goes on at the heading.
  if (!isFirst) heading.focus();
  isFirst = false;
  shown = parts;
  for (const part of parts) part.refresh();
}

function nowhere(found) {
  const text = found ? "This page is for admins: your key does not have that role." : "There is no such page.";
  return {
    title: found ? found.page.title : "Nothing here",
    open: () => ({
      parts: [h("div", { class: "state" }, h("p", {}, text), h("a", { href: "#/" }, "Go to the overview"))],
    }),
  };
}

function navigation(current) {
  const links = PAGES.filter(({ page, within }) => within === undefined && (!page.admins || isAdmin()));
  // Nobody is led to pages that nobody may see yet.
  put(document.getElementById("pages"), me === null ? [] : links.map(({ path, page }) =>
    h("li", {}, h("a", { href: `#/${path}`, "aria-current": path === current ? "page" : null }, page.title))));
}

let stream = "away";

function standing(word = stream) {
  stream = word;
  const forget = h("button", { type: "button", on: { click: () => { present(null, false); location.reload(); } } },
    "Forget the key");
  put(document.getElementById("standing"), me === null ? [] : [
    h("div", {}, h("b", {}, me.user_id), h("br"), me.roles.join(", ")),
    h("div", { id: "stream" }, word === "live" ? badge("live", "good") : [badge("not live", "off"), h("br"), "read every few seconds"]),
    hasCredential() ? h("div", {}, forget) : null,
  ]);
}

let stopListening = () => {};

async function enter() {
  try {
    me = await get("api/me");
  } catch (error) {
    if (error.status === 401) return;
    main.replaceChildren(h("h1", {}, "Caribou"), problem(error, enter));
    return;
  }
  standing();
  open();
  stopListening();
  stopListening = listen(
    (concerns) => shown?.filter((part) => part.sections.some(concerns)).forEach((part) => part.refresh()), standing);
}

whenAsked((why) => {
  leave?.abort();
  stopListening();
  shown = null;
  me = null;
  standing();
  navigation(null);
  if (why === "refused") present(null, false);
  document.title = "Sign in · Caribou";
  const { element, first } = entrance(why, enter);
  main.replaceChildren(element);
  first.focus();
});

window.addEventListener("hashchange", () => {
  if (me !== null && /^#?(\/|$)/.test(location.hash)) open();
});

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

enter();
