// Talks to this replica: the same routes that everybody may call, with the credential of whoever looks.
//
// The credential lives in this module alone; it is kept beyond the page only when its owner asks for that.

const KEPT = "caribou-credential";

/// How long a stream may be silent: three times the pause after which the replica says that it is there.
const SILENCE = 45000;

let credential = null;
try {
  credential = sessionStorage.getItem(KEPT);
} catch {
  // A browser that keeps nothing is no reason to fail.
}

/// Told when the replica asks for a credential: `missing` or `refused`.
let asked = () => {};

export function whenAsked(listener) {
  asked = listener;
}

export function hasCredential() {
  return credential !== null;
}

/// Presents `text` from now on; `keep`: until this tab is closed, even over a reload.
export function present(text, keep) {
  credential = text;
  try {
    if (keep && text !== null) sessionStorage.setItem(KEPT, text);
    else sessionStorage.removeItem(KEPT);
  } catch {
    // As above.
  }
}

/// A refusal or failure, with what the replica says of it.
export class Refused extends Error {
  constructor(status, body) {
    super(body.detail ?? `the replica answered with status ${status}`);
    this.status = status;
    this.code = body.code ?? "";
    this.requestId = body.request_id ?? "";
    this.upstream = body.upstream ?? null;
  }
}

async function open(method, path, { body, headers = {}, signal } = {}) {
  const sent = { ...headers };
  if (credential !== null) sent.Authorization = `Bearer ${credential}`;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  let response;
  try {
    // Addresses count from the page's own, so that a proxy may put a path in front of all.
    response = await fetch(new URL(path, document.baseURI), {
      method, headers: sent, body: text, signal, credentials: "omit", cache: "no-store", redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { detail: "The replica does not answer. It may be restarting, or the network is down." });
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  if (response.status === 401) asked(credential === null ? "missing" : "refused");
  throw new Refused(response.status, told);
}

/// Reads what `path` answers with.
export async function get(path, signal) {
  return (await open("GET", path, { signal })).json();
}

/// The same as text, byte for byte, with the tag of what is stored.
export async function read(path, signal) {
  const response = await open("GET", path, { signal });
  return { text: await response.text(), tag: response.headers.get("etag") };
}

/// Asks for a change; answers with what came back, null when that is nothing.
export async function send(method, path, body, headers) {
  const text = await (await open(method, path, { body, headers })).text();
  return text === "" ? null : JSON.parse(text);
}

/// Reads a stream of events to its end: `tell(name, data)` for each, in order.
export async function follow(method, path, options, tell) {
  const headers = { ...options.headers, Accept: "text/event-stream" };
  const response = await open(method, path, { ...options, headers });
  if (response.status === 204 || !response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    // A connection that is lost without a word would be waited for for ever.
    let isLost = false;
    const lost = setTimeout(() => {
      isLost = true;
      reader.cancel().catch(() => {});
    }, SILENCE);
    const { value, done } = await reader.read().finally(() => clearTimeout(lost));
    if (isLost) throw new Refused(0, { detail: "The connection to the replica is lost." });
    if (done) return;
    const events = (rest + value).split(/\r?\n\r?\n/);
    rest = events.pop();
    for (const event of events) {
      const of = (name) => event.split(/\r?\n/)
        .filter((line) => line.startsWith(`${name}:`))
        .map((line) => line.slice(name.length + 1).replace(/^ /, ""));
      if (of("data").length) tell(of("event")[0] ?? "message", of("data").join("\n"));
    }
  }
}
