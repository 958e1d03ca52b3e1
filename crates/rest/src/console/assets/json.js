// JSON as text. Numbers that JavaScript would round pass as they are written, and members keep their order.

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/// Whether `text` is a number of JSON.
export function isNumber(text) {
  return NUMBER.test(text);
}

/// Whether `text` is JSON; else what is wrong with it.
export function fault(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `This is not JSON: ${error.message}`;
  }
}

/// Valid JSON with lines and indents, every value as it was written.
export function pretty(text) {
  let out = "";
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  tokens.forEach((token, at) => {
    const isEmpty = (token === "{" && tokens[at + 1] === "}") || (token === "[" && tokens[at + 1] === "]");
    const closesEmpty = (token === "}" && tokens[at - 1] === "{") || (token === "]" && tokens[at - 1] === "[");
    if (closesEmpty) out += token;
    else if (isEmpty) out += token;
    else if (token === "{" || token === "[") { depth += 1; out += token + line(); }
    else if (token === "}" || token === "]") { depth -= 1; out += line() + token; }
    else if (token === ",") out += token + line();
    else if (token === ":") out += ": ";
    else out += token;
  });
  return out;
}

/// The text of one member of an object at the top of `text`, as it was written; null when it has none of that name.
export function member(text, name) {
  const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
  let depth = 0;
  let key = null;
  let begun = -1;
  for (let token = tokens.exec(text); token; token = tokens.exec(text)) {
    const [word] = token;
    if (begun >= 0 && depth === 1 && (word === "," || word === "}")) return text.slice(begun, token.index).trim();
    if (word === "{" || word === "[") depth += 1;
    else if (word === "}" || word === "]") depth -= 1;
    else if (depth === 1 && word === ":" && key === name) begun = tokens.lastIndex;
    if (depth === 1 && begun < 0 && word.startsWith("\"")) key = JSON.parse(word);
  }
  return null;
}
