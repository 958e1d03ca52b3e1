// The console where callers are told apart: the entrance, what a user without a role sees, and what an admin does.

import { demand, visit } from "./browser.mjs";

const { ADMIN_KEY: admin, USER_KEY: user } = process.env;

/// Everything that only an admin may press, by how its name begins.
const WRITES = /^(Switch|Ask |Refresh|Forget the chain|Roll back|Reset)/;

/// The same over the API.
const REFUSED = [
  ["POST", "api/mcp/cache/reset"], ["PATCH", "api/mcp/config", { server_name: "fake", enabled: false }],
  ["POST", "api/mcp/tools/refresh"], ["POST", "api/mcp/config/rollback", { revision: 1 }], ["DELETE", "api/mcp/oauth/fake"],
  ["GET", "api/replicas"], ["GET", "api/mcp-tasks"],
];

await visit(async (page) => {
  await page.open("#/sessions");
  await page.heading("Who are you?");
  demand(await page.focused() === "API key or token", "the entrance does not take the focus");
  await page.look("entrance");
  await page.tab.keyboard.type("hunter2");
  await page.tab.keyboard.press("Enter");
  await page.text("The key was not accepted");
  await page.tab.keyboard.type(user);
  await page.tab.keyboard.press("Enter");
  await page.heading("Sessions");
  await asUser(page);
  await asAdmin(page);
});

async function asUser(page) {
  await page.row("fake", "ann", "t1");
  demand(!(await page.tab.content()).includes("bob"), "another user's session is shown");
  for (const [name, path] of [["Overview", ""], ["Servers", "servers"], ["Tools", "tools"], ["Sessions", "sessions"], ["Tasks", "tasks"], ["Audit log", "audit"]]) {
    await page.tab.locator(`nav a[href="#/${path}"]`).click();
    await page.heading(name);
    await page.until("read page", () => document.querySelector("[aria-busy]") === null && document.querySelector("main .body *") !== null);
    const writes = (await page.buttons()).filter((button) => WRITES.test(button));
    demand(writes.length === 0, `${name} offers a user to ${writes}`);
    if (name === "Servers") await page.look("servers-of-a-user");
  }
  const links = await page.tab.$$eval("nav a", (all) => all.map((one) => one.innerText));
  demand(!links.includes("Configuration") && !links.includes("Token chains"), `a user is led to ${links}`);
  await page.open("#/configuration");
  await page.text("This page is for admins");
  await page.tab.reload();
  await page.heading("Who are you?");
  // A reload forgets a key that was not to be kept.
  demand(await page.tab.evaluate(() => sessionStorage.length + localStorage.length) === 0, "the key was kept");
  await page.tab.keyboard.type(user);
  await page.tab.keyboard.press("Enter");
  await page.text("This page is for admins");
  for (const [method, path, body] of REFUSED) {
    const status = await page.tab.evaluate(async (method, path, body, key) => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      return (await fetch(path, { method, headers, body: body && JSON.stringify(body) })).status;
    }, method, path, body, user);
    demand(status === 403, `${method} ${path} answers a user with ${status}`);
  }
}

async function asAdmin(page) {
  await page.press("Forget the key");
  await page.heading("Who are you?");
  await page.tab.locator("input[type=checkbox]").click();
  await page.tab.locator("input[type=password]").fill(admin);
  await page.tab.keyboard.press("Enter");
  await page.text("In force");
  await page.go("Servers");
  await page.row("fake", "ready");
  const offered = await page.buttons();
  demand(offered.includes("Switch off fake"), `an admin is offered ${offered}`);
  await page.go("Sessions");
  await page.row("fake", "bob", "t1");
  // This one was to be kept for the tab.
  await page.tab.reload();
  await page.heading("Sessions");
  await page.row("fake", "bob", "t1");
}
