// Tables: a caption, headings with a scope, and rows that keep the focus when they are read anew.

import { h, put, fresh } from "./dom.js";

/// A table of `columns`: `{title, cell(row), class}`. The first one names its row.
export class Table {
  constructor({ columns, key, caption, empty }) {
    this.columns = columns;
    this.key = key;
    this.caption = caption;
    this.empty = empty;
    this.name = fresh("caption");
    this.line = h("caption", { id: this.name });
    this.rows = h("tbody");
    const heads = columns.map(({ title, class: kind, unseen }) =>
      h("th", { scope: "col", class: kind }, unseen ? h("span", { class: "unseen" }, title) : title));
    this.box = h("div", { class: "scroll" }, h("table", {}, this.line, h("thead", {}, h("tr", {}, heads)), this.rows));
    this.element = h("div", { class: "body" });
    new ResizeObserver(() => this.reach()).observe(this.box);
  }

  /// Shows `rows`; when there are none, what to do about it.
  show(rows) {
    if (rows.length === 0) {
      put(this.element, [h("div", { class: "state" }, this.empty())]);
      return;
    }
    if (!this.box.isConnected) this.element.replaceChildren(this.box);
    const caption = this.caption(rows);
    if (this.line.textContent !== caption) this.line.textContent = caption;
    put(this.rows, rows.map((row) => this.row(row)));
    this.reach();
  }

  row(row) {
    const cells = this.columns.map(({ cell, class: kind }, at) =>
      h(at === 0 ? "th" : "td", { scope: at === 0 ? "row" : null, class: kind }, [cell(row)].flat(9)));
    return h("tr", { "data-key": this.key(row) }, cells);
  }

  /// What scrolls must be reachable by keyboard.
  reach() {
    const scrolls = this.box.scrollWidth > this.box.clientWidth + 1;
    if (scrolls) {
      this.box.setAttribute("tabindex", "0");
      this.box.setAttribute("role", "region");
      this.box.setAttribute("aria-labelledby", this.name);
    } else {
      for (const name of ["tabindex", "role", "aria-labelledby"]) this.box.removeAttribute(name);
    }
  }
}
