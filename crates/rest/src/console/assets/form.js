// A form from a JSON Schema, and the JSON that it holds.
//
// Knows what tools commonly ask for: objects, texts, numbers, booleans, choices, and lists of texts. Anything else is
// written as JSON. What is left empty is left out. Checks form, and leaves meaning to the server.

import { h, field, fresh } from "./dom.js";
import { fault, isNumber, pretty } from "./json.js";

/// Objects within objects that become groups of fields; deeper ones are JSON.
const DEEPEST = 3;

/// Formats that say something to a person.
const FORMATS = ["date", "date-time", "time", "duration", "email", "uri", "uuid", "ipv4", "ipv6", "hostname", "regex"];

/// The fields of `schema`: `{element, read()}`. `read` answers with the text of a JSON object.
export function formOf(schema, values = {}) {
  const root = schema ?? {};
  const group = fieldsOf(plain(root, root), root, 0, values);
  if (group.fields.length) return { element: h("div", { class: "body" }, group.fields), read: group.read };
  const takesMore = root.additionalProperties !== false && (root.anyOf || root.oneOf || root.allOf || root.$ref || !root.properties);
  if (!takesMore) return { element: h("p", { class: "faint" }, "It takes no arguments."), read: () => "{}" };
  const whole = json("Arguments as JSON", "{}", { note: "Its schema names no fields.", required: true });
  return { element: whole.element, read: () => whole.read() ?? "{}" };
}

/// `schema` with its reference followed and “or null” left out.
function plain(schema, root) {
  let found = schema;
  for (let hop = 0; hop < 8 && found && typeof found.$ref === "string"; hop += 1) {
    const path = found.$ref.startsWith("#/") ? found.$ref.slice(2).split("/") : [];
    const target = path.reduce((at, key) => at?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], root);
    const { $ref: _, ...beside } = found;
    found = path.length && target ? { ...target, ...beside } : beside;
  }
  const choices = found?.anyOf ?? found?.oneOf;
  const real = choices?.filter((choice) => choice?.type !== "null");
  if (choices && real.length === 1) {
    const { anyOf: _, oneOf: __, ...beside } = found;
    return plain({ ...real[0], ...beside }, root);
  }
  return found ?? {};
}

function fieldsOf(schema, root, depth, values) {
  const names = Object.keys(schema.properties ?? {});
  const required = schema.required ?? [];
  const made = names.map((name) => {
    const one = plain(schema.properties[name], root);
    return { name, ...fieldOf(name, one, root, depth, required.includes(name), values?.[name]) };
  });
  return {
    fields: made.map((one) => one.element),
    read: () => {
      const members = made.map((one) => [one.name, one.read()]).filter(([, text]) => text !== null);
      return `{${members.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
    },
  };
}

/// One field: `read` answers with JSON text, null when it is left empty.
function fieldOf(name, schema, root, depth, required, value) {
  const type = [schema.type].flat().filter((one) => one !== "null")[0];
  const note = notes(schema);
  const label = schema.title && schema.title.toLowerCase().replaceAll(" ", "_") !== name.toLowerCase()
    ? `${name} (${schema.title})` : name;
  if (Array.isArray(schema.enum) || schema.const !== undefined) {
    return choice(label, schema.enum ?? [schema.const], schema, { note, required });
  }
  if (type === "boolean") return choice(label, [true, false], schema, { note, required });
  if (type === "number" || type === "integer") return number(label, type, schema, { note, required, value });
  if (type === "string") return text(label, schema, { note, required, value });
  if (type === "array" && plain(schema.items ?? {}, root).type === "string") return lines(label, { note, required });
  if (type === "object" && schema.properties && depth < DEEPEST) return group(label, schema, root, depth, required, note);
  const start = schema.default === undefined ? "" : pretty(JSON.stringify(schema.default));
  return json(label, start, { note: [note, "As JSON."].filter(Boolean).join(" "), required });
}

function notes(schema) {
  const of = (name, text) => (schema[name] === undefined ? null : `${text} ${schema[name]}.`);
  return [schema.description, of("minimum", "At least"), of("maximum", "At most"),
    FORMATS.includes(schema.format) ? `Format: ${schema.format}.` : null, schema.default === undefined ? null : `When empty: ${JSON.stringify(schema.default)}.`,
  ].filter(Boolean).join(" ") || null;
}

function text(label, schema, { note, required, value }) {
  const isLong = (schema.maxLength ?? 0) > 300 || /text|body|content|query|code|prompt|message/i.test(label) && !schema.maxLength;
  const control = h(isLong ? "textarea" : "input", {
    autocomplete: "off", minlength: schema.minLength, maxlength: schema.maxLength, rows: isLong ? 2 : null,
    pattern: isLong ? null : schema.pattern,
  });
  if (value !== undefined) control.value = value;
  return {
    element: field(label, control, { note, required }),
    read: () => (control.value === "" && !required ? null : JSON.stringify(control.value)),
  };
}

function number(label, type, schema, { note, required, value }) {
  const control = h("input", { inputmode: type === "integer" ? "numeric" : "decimal", autocomplete: "off" });
  if (value !== undefined) control.value = value;
  const check = () => {
    const word = control.value.trim();
    const isRight = word === "" || (isNumber(word) && (type === "number" || /^-?\d+$/.test(word)));
    control.setCustomValidity(isRight ? "" : type === "integer" ? "Must be a whole number." : "Must be a number.");
  };
  control.addEventListener("input", check);
  return {
    element: field(label, control, { note, required }),
    read: () => (control.value.trim() === "" ? null : control.value.trim()),
  };
}

/// Choices keep their type: the option holds JSON.
function choice(label, values, schema, { note, required }) {
  const first = schema.default === undefined ? "" : JSON.stringify(schema.default);
  const empty = required && first === "" ? "choose one" : "leave out";
  const control = h("select", {},
    required && first !== "" ? null : h("option", { value: "" }, empty),
    values.map((value) => h("option", { value: JSON.stringify(value) }, typeof value === "string" ? value : JSON.stringify(value))));
  if (required && first !== "") control.value = first;
  return { element: field(label, control, { note, required }), read: () => control.value || null };
}

function lines(label, { note, required }) {
  const control = h("textarea", { rows: 3, autocomplete: "off" });
  const text = [note, "One a line."].filter(Boolean).join(" ");
  return {
    element: field(label, control, { note: text, required }),
    read: () => {
      const items = control.value.split("\n").filter((line) => line !== "");
      return items.length || required ? JSON.stringify(items) : null;
    },
  };
}

function json(label, start, { note, required }) {
  const control = h("textarea", { rows: 4, autocomplete: "off", spellcheck: "false" });
  control.value = start;
  control.addEventListener("input", () =>
    control.setCustomValidity(control.value.trim() === "" ? "" : fault(control.value) ?? ""));
  return {
    element: field(label, control, { note, required }),
    read: () => (control.value.trim() === "" ? null : control.value.trim()),
  };
}

function group(label, schema, root, depth, required, note) {
  const inner = fieldsOf(schema, root, depth + 1);
  const described = note ? fresh("note") : null;
  // What an optional group needs is needed only when it is there.
  if (!required) for (const part of inner.fields) for (const one of part.querySelectorAll("[required]")) one.required = false;
  return {
    element: h("fieldset", { "aria-describedby": described },
      h("legend", {}, label, required ? h("small", {}, "required") : null),
      note ? h("small", { id: described }, note) : null, inner.fields),
    read: () => {
      const text = inner.read();
      return text === "{}" && !required ? null : text;
    },
  };
}
