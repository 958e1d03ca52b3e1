// Listens to which parts changed, for as long as somebody looks at the page.
//
// A stream that breaks is opened again, soon and then every few seconds; until it is, and for parts it does not tell
// of, pages read anew by the clock.

import { follow } from "./api.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 5000;
const BY_CLOCK = 5000;

/// What the stream tells of; empty while there is none.
let told = [];
let stop = null;

/// Begins to listen, until the function that comes back is called. `changed(concerns)`: read anew what `concerns(section)`
/// holds for. `standing(word)`: how the stream is.
export function listen(changed, standing) {
  const life = new AbortController();
  const begin = () => {
    if (stop || document.hidden) return;
    stop = new AbortController();
    keepOn(stop.signal, changed, standing);
  };
  const end = () => {
    stop?.abort();
    stop = null;
    told = [];
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? end() : begin()), { signal: life.signal });
  const clock = setInterval(() => {
    if (stop) changed((section) => !told.includes(section));
  }, BY_CLOCK);
  life.signal.addEventListener("abort", () => {
    clearInterval(clock);
    end();
  });
  begin();
  return () => life.abort();
}

async function keepOn(signal, changed, standing) {
  let pause = FIRST_PAUSE;
  while (!signal.aborted) {
    try {
      await follow("GET", "api/console/events", { signal }, (name, data) => {
        const { sections } = JSON.parse(data);
        if (name === "begin") {
          told = sections;
          pause = FIRST_PAUSE;
          standing("live");
          changed(() => true);
        } else if (name === "changed") {
          changed((section) => sections.includes(section));
        }
      });
    } catch (error) {
      if (signal.aborted || error.status === 401) return;
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
    if (signal.aborted) return;
    told = [];
    standing("away");
    await new Promise((resume) => setTimeout(resume, pause));
  }
}
