// Makes elements. Text is always text here: nothing that a server said can become markup.

/// An element with these attributes and children; `on` holds listeners, null and false children are left out.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value != null) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children.flat(9).filter((child) => child != null && child !== false));
  return element;
}

let last = 0;

/// A fresh id, for labels and descriptions.
export function fresh(name) {
  last += 1;
  return `${name}-${last}`;
}

/// Puts `nodes` into `container`, but leaves what is there already and equal: focus, selection and open details stay.
export function put(container, nodes) {
  const wanted = nodes.flat(9).filter((node) => node != null && node !== false);
  const there = [...container.children];
  const isSame = (old, node) => old === node || old.isEqualNode(bare(old, node));
  if (there.length === wanted.length && there.every((old, at) => isSame(old, wanted[at]))) return;
  const kept = new Set(there.filter((old) => wanted.includes(old)));
  const next = wanted.map((node) => {
    const same = kept.has(node) ? node : there.find((old) => !kept.has(old) && isSame(old, node));
    if (same) kept.add(same);
    return same ?? node;
  });
  const held = place(container);
  for (const old of there) if (!kept.has(old)) old.remove();
  next.forEach((node, at) => {
    if (container.children[at] !== node) container.insertBefore(node, container.children[at] ?? null);
  });
  back(container, held);
}

/// `fresh` as it would be if what a person opened in `old` were open.
function bare(old, fresh) {
  const opened = [...old.querySelectorAll("details")].map((details) => details.open);
  if (!opened.includes(true)) return fresh;
  [...fresh.querySelectorAll("details")].forEach((details, at) => { details.open = opened[at] ?? false; });
  return fresh;
}

/// What has the focus inside, by the key of its row and its own name.
function place(container) {
  const focused = document.activeElement;
  if (!focused || focused === container || !container.contains(focused)) return null;
  return { key: focused.closest("[data-key]")?.dataset.key, name: focused.dataset.name ?? focused.textContent };
}

/// Gives the focus back to what stands in for it now; where nothing does, to the page, and never to nowhere.
function back(container, held) {
  if (!held || container.contains(document.activeElement)) return;
  const row = [...container.querySelectorAll("[data-key]")].find((row) => row.dataset.key === held.key);
  const within = [...(row ?? container).querySelectorAll("a, button, summary")];
  const found = within.find((node) => (node.dataset.name ?? node.textContent) === held.name) ?? (row && within[0]);
  (found ?? document.getElementById("main")).focus({ preventScroll: true });
}

/// Tells people who hear the page what happened.
export function announce(text) {
  const place = document.getElementById("announcer");
  place.textContent = "";
  requestAnimationFrame(() => { place.textContent = text; });
}

/// A labelled control: `note` says more about it.
export function field(label, control, { note, required, id = fresh("field") } = {}) {
  control.id = id;
  const described = note ? fresh("note") : null;
  if (described) control.setAttribute("aria-describedby", described);
  if (required) control.required = true;
  return h("div", { class: "field" },
    h("label", { for: id }, label, required ? h("small", {}, "required") : null),
    control,
    note ? h("small", { id: described }, note) : null);
}
