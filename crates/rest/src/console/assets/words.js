// How facts are written: ages, times, states, names.

const STATES = {
  alive: "good", ready: "good", idle: "good", completed: "good", ok: "good", delivered: "good",
  starting: "busy", refreshing: "busy", submitted: "busy", working: "busy",
  draining: "warn", input_required: "warn", unknown: "off", disabled: "off", cancelled: "off",
  failed: "bad", dropped: "bad", reauth_needed: "bad", "lease ended": "bad",
};

const MARKS = { good: "●", busy: "◐", warn: "◆", bad: "▲", off: "○" };

const SPOKEN = {
  input_required: "asks a question", reauth_needed: "needs a new token", unknown: "not known yet",
};

import { h } from "./dom.js";

/// A state as a mark and a word: never by colour alone.
export function badge(state, tone = STATES[state] ?? "bad", word = SPOKEN[state] ?? state) {
  return h("span", { class: `badge ${tone}` }, h("span", { "aria-hidden": "true" }, MARKS[tone]), word);
}

/// A span of milliseconds in the largest unit that fits.
export function span(ms) {
  if (ms == null) return "–";
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

/// A moment on this person's clock.
export function moment(time) {
  const date = new Date(time);
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  const text = date.toLocaleString(undefined, {
    year, month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
  });
  return h("time", { datetime: date.toISOString() }, text);
}

/// `3 servers`, `1 server`, `no servers`.
export function count(number, one, many = `${one}s`) {
  return `${number === 0 ? "no" : number} ${number === 1 ? one : many}`;
}

/// A long id, short to read and whole to look at.
export function id(text) {
  return text.length <= 14 ? h("code", {}, text) : h("code", { title: text }, `…${text.slice(-8)}`);
}

/// The revision a server speaks.
export function era(entry) {
  return entry.version ? [entry.version, h("small", {}, entry.era)] : "–";
}

/// The part of an address for one more step of a path.
export function step(text) {
  return encodeURIComponent(text);
}

/// A query of those values that are not empty.
export function query(values) {
  const given = Object.entries(values).filter(([, value]) => value != null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}
