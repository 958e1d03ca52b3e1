// Every page of the console, as an operator sees it where callers are not told apart.

import { demand, visit } from "./browser.mjs";

await visit(async (page) => {
  await overview(page);
  await servers(page);
  await toolByKeyboard(page);
  await progress(page);
  await sessions(page);
  await tasks(page);
  await chains(page);
  await audit(page);
  await configuration(page);
  await liveness(page);
  await texts(page);
});

async function overview(page) {
  await page.open();
  await page.heading("Overview");
  await page.text("Server broken cannot be used");
  await page.row("alive", "answers this page");
  await page.until("live stream", () => document.querySelector("#stream .good") !== null);
  await page.look("overview");
  await page.lookNarrow("overview");
}

async function servers(page) {
  await page.go("Servers");
  await page.row("demo", "stdio", "ready");
  await page.row("broken", "failed");
  await page.row("scripted", "ready");
  const name = await page.focused();
  demand(name === "Servers", `the focus is on “${name}” after a link was followed`);
  await page.look("servers");
  await page.lookNarrow("servers");
  await page.press("Switch off scripted");
  await page.until("dialog", () => document.querySelector("dialog[open]")?.innerText.includes("Switch off scripted?"));
  await page.look("dialog");
  // Escape leaves it, and the focus is where it was.
  await page.tab.keyboard.press("Escape");
  await page.until("closed dialog", () => document.querySelector("dialog") === null);
  demand(await page.focused() === "Switch off scripted", "the focus does not come back from a dialog");
  await page.tab.keyboard.press("Enter");
  await page.until("dialog", () => document.querySelector("dialog[open]") !== null);
  await page.tabTo("Switch off");
  await page.tab.keyboard.press("Enter");
  await page.announced("scripted is switched off.");
  await page.row("scripted", "disabled");
  await page.press("Switch on scripted");
  await page.until("dialog", () => document.querySelector("dialog[open]") !== null);
  await page.tab.locator("dialog button.main").click();
  await page.announced("scripted is switched on.");
  await page.row("scripted", "ready");
}

/// From the list of tools to the answer, without a mouse.
async function toolByKeyboard(page) {
  await page.go("Tools");
  await page.row("demo_add", "Adds two numbers.");
  await page.look("tools");
  await page.tabTo("Find");
  await page.tab.keyboard.type("add");
  await page.until("filtered table", () => document.querySelectorAll("tbody tr").length === 1);
  await page.tabTo("demo_add");
  await page.demandVisibleFocus();
  await page.tab.keyboard.press("Enter");
  await page.heading("demo_add");
  await page.until("form", () => document.querySelector("main form") !== null);
  await page.tabTo("a");
  await page.demandVisibleFocus();
  await page.tab.keyboard.type("9007199254740993");
  await page.tabTo("b");
  await page.tab.keyboard.type("x");
  await page.tab.keyboard.press("Enter");
  await page.until("invalid field", () => document.querySelector("input:invalid")?.validationMessage === "Must be a number.");
  await page.tab.keyboard.press("Backspace");
  await page.tab.keyboard.type("2");
  await page.tabTo("Call it");
  await page.tab.keyboard.press("Enter");
  await page.announced("The tool has answered");
  await page.text("9007199254740994");
  await page.look("tool");
  await page.lookNarrow("tool");
}

async function progress(page) {
  await page.open("#/tool/demo_slow");
  await page.until("form", () => document.querySelector("main form") !== null);
  await page.fill("steps", "100");
  await page.fill("step_ms", "1000");
  await page.press("Call it");
  await page.until("progress", () => document.querySelector("progress")?.max === 100 && document.querySelector("progress").value >= 1);
  await page.text("of 100");
  await page.look("progress");
  await page.press("Cancel");
  await page.announced("The call is cancelled.");
  await page.open("#/tool/scripted_hostile");
  await page.press("Call it");
  await page.text("<img src=x onerror=alert(1)>");
  demand(await page.tab.$("main img") === null, "what a server said became an element");
  await page.open("#/tool/demo_fail");
  await page.press("Call it");
  await page.text("The tool reports an error");
  await page.open("#/tool/scripted_wrong");
  await page.press("Call it");
  await page.text("-32000: not today");
  await page.look("refused");
}

async function sessions(page) {
  await page.go("Sessions");
  await page.row("demo", "ann", "kitchen");
  await page.row("demo", "default", "console");
  await page.look("sessions");
  await page.press("Close the session of ann with demo in kitchen");
  await page.tab.locator("dialog button.danger").click();
  await page.announced("1 session closed.");
  await page.until("row that is gone", () => ![...document.querySelectorAll("tbody tr")]
    .some((row) => row.innerText.includes("demo") && row.innerText.includes("kitchen")));
}

async function tasks(page) {
  await page.go("Tasks");
  await page.row("report", "demo", "bob", "office");
  await page.row("asks a question");
  await page.look("tasks");
  await page.tab.locator("tbody a").click();
  await page.text("Which format should the report on reindeer have?");
  await page.look("task");
  await page.lookNarrow("task");
  await page.tab.locator("main form select").fill('"table"');
  await page.press("Send the answer");
  await page.announced("The answer is sent.");
  await page.text("A table on reindeer");
  await page.until("the end of the list of events", () => [...document.querySelectorAll(".steps li")].at(-1)?.innerText.includes("completed"));
  await page.look("task-done");
  // Another one, from the tool to its cancellation.
  await page.open("#/tool/demo_report_submit");
  await page.until("form", () => document.querySelector("main form") !== null);
  await page.fill("topic", "moss");
  await page.press("Call it");
  await page.tab.locator("::-p-xpath(//main//a[.='Open the task'])").click();
  await page.press("Cancel the task");
  await page.tab.locator("dialog button.danger").click();
  await page.announced("The task is to be cancelled.");
  await page.until("state cancelled", () => document.querySelector(".facts").innerText.includes("cancelled"));
}

async function chains(page) {
  await page.go("Token chains");
  await page.row("shop", "idle", "1");
  await page.look("chains");
  demand(!(await page.tab.content()).includes("SECRET"), "a token is shown");
  await page.press("Refresh the token of shop");
  await page.tab.locator("dialog button.main").click();
  await page.announced("shop has a new token.");
  await page.row("shop", "2");
}

async function audit(page) {
  await page.go("Audit log");
  await page.row("call tool", "demo_counter", "ok");
  await page.row("change config", "ok");
  await page.look("audit");
  await page.lookNarrow("audit");
  await page.fill("Outcome", "upstream_error");
  await page.tab.keyboard.press("Enter");
  await page.until("filtered rows", () => {
    const rows = [...document.querySelectorAll("tbody tr")];
    return rows.length > 0 && rows.every((row) => row.innerText.includes("upstream_error"));
  });
}

async function configuration(page) {
  await page.go("Configuration");
  await page.row("3", "local");
  await page.row("1", "import");
  await page.look("configuration");
  await page.lookNarrow("configuration");
  await page.press("Roll back to revision 1");
  await page.tab.locator("dialog button.danger").click();
  await page.announced("Revision 1 is in force again.");
  await page.row("4", "in force");
  await page.press("Reset everything");
  await page.tab.locator("dialog button.danger").click();
  await page.announced("It is reset: 1 replica confirmed.");
}

/// What others do is shown without a key being pressed.
async function liveness(page) {
  await page.go("Sessions");
  await page.text("No session is open.");
  await page.look("empty");
  await page.until("live stream", () => document.querySelector("#stream .good") !== null);
  const status = await page.tab.evaluate(async () => {
    const body = JSON.stringify({ name: "demo_counter", arguments: {}, user_id: "eve", thread_id: "garden" });
    return (await fetch("api/mcp/tools/call", { method: "POST", headers: { "content-type": "application/json" }, body })).status;
  });
  demand(status === 200, `a call was answered with ${status}`);
  await page.row("demo", "eve", "garden");
}

/// JSON is shown and sent as it is written, whatever JavaScript would make of its numbers.
async function texts(page) {
  const [shown, found, none] = await page.tab.evaluate(async () => {
    const { pretty, member } = await import("./console/json.js");
    const text = '{"a":{"result":"}"},"x":"\\"result\\":1", "result": {"n":9007199254740993.10,"e":[],"o":{}} ,"b":[1,{"result":2}]}';
    return [pretty(member(text, "result")), member(text, "b"), member(text, "n")];
  });
  demand(shown === '{\n  "n": 9007199254740993.10,\n  "e": [],\n  "o": {}\n}', `a result is shown as ${shown}`);
  demand(found === '[1,{"result":2}]' && none === null, `members are read as ${found} and ${none}`);
}
