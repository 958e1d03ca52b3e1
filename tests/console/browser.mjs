// A headless Chromium for the tests of the web console, and what they look at pages with.
//
// Owns nothing of the console: it sees what a person sees, by role and name, and asks axe for what some people could
// not use. Every wait has a deadline; what does not come fails the run with what is there instead.

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const modules = process.env.CONSOLE_MODULES;
const shots = process.env.CONSOLE_SHOTS;
const origin = process.env.CONSOLE_URL;

const PATIENCE = 20_000;

const load = (path) => import(pathToFileURL(join(modules, path)));
const { default: chromium } = await load("@sparticuz/chromium/build/index.js");
const { default: puppeteer } = await load("puppeteer-core/lib/puppeteer/puppeteer-core.js");
const axe = readFileSync(join(modules, "axe-core/axe.min.js"), "utf8");

/// Fails with `what` unless `isSo`.
export function demand(isSo, what) {
  if (!isSo) throw new Error(what);
}

/// Starts the browser with one page and runs `scenario` on it; what the page says wrongly fails the run.
export async function visit(scenario) {
  mkdirSync(shots, { recursive: true });
  const browser = await puppeteer.launch({
    args: chromium.args.filter((flag) => !/disable-web-security|allow-running-insecure/.test(flag)),
    executablePath: await chromium.executablePath(), headless: "shell",
    defaultViewport: { width: 1280, height: 820, deviceScaleFactor: 1 },
  });
  const tab = await browser.newPage();
  tab.setDefaultTimeout(PATIENCE);
  const faults = [];
  tab.on("pageerror", (error) => faults.push(`an error in the page: ${error.stack ?? error}`));
  tab.on("console", (message) => {
    // That the browser notes a refused request is no fault: some are made to be refused.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) faults.push(`said: ${message.text()}`);
  });
  tab.on("request", (request) => {
    const isOurs = request.url().startsWith(origin) || request.url().startsWith("data:");
    if (!isOurs) faults.push(`asked elsewhere: ${request.url()}`);
  });
  try {
    await scenario(new Page(tab));
    demand(faults.length === 0, faults.join("\n"));
    console.log("all pages are as they should be");
  } catch (error) {
    await tab.screenshot({ path: join(shots, "failed.png") }).catch(() => {});
    const text = await tab.evaluate(() => document.body.innerText).catch(() => "nothing");
    console.error(`${error.stack}\n${faults.join("\n")}\nAt ${tab.url()} there is:\n${text.slice(0, 4000)}`);
    process.exitCode = 1;
  } finally {
    await browser.close();
  }
}

/// One page of the console.
class Page {
  constructor(tab) {
    this.tab = tab;
  }

  /// Opens the page of this fragment, by its address.
  async open(fragment = "#/") {
    await this.tab.goto(`${origin}/console${fragment}`, { waitUntil: "load" });
  }

  /// Follows the link of the list with this name.
  async go(name) {
    await this.tab.locator(`::-p-xpath(//nav//a[.="${name}"])`).click();
    await this.heading(name);
  }

  heading(text) {
    return this.until(`the heading “${text}”`, (text) => document.querySelector("h1")?.innerText === text, text);
  }

  /// Waits until the function holds in the page.
  async until(what, holds, ...values) {
    await this.tab.waitForFunction(holds, { timeout: PATIENCE, polling: 50 }, ...values).catch((error) => {
      throw new Error(`there is no ${what}: ${error.message}`);
    });
  }

  /// Waits until the content says this.
  text(text) {
    return this.until(`text “${text}”`, (text) => document.querySelector("main").innerText.includes(text), text);
  }

  /// Waits until what is read aloud says this.
  announced(text) {
    return this.until(`announcement “${text}”`, (text) => document.getElementById("announcer").textContent.includes(text), text);
  }

  /// Waits until a table has a row with all of these words.
  row(...words) {
    return this.until(`row with ${words.join(", ")}`, (words) => [...document.querySelectorAll("tbody tr")]
      .some((row) => words.every((word) => row.innerText.includes(word))), words);
  }

  /// The names of all buttons, as they are read aloud.
  buttons() {
    return this.tab.$$eval("main button", (all) => all.filter((one) => one.checkVisibility())
      .map((one) => one.ariaLabel ?? one.innerText));
  }

  /// Presses the button of this name, with the mouse.
  async press(name) {
    await this.tab.locator(`::-p-aria([name="${name}"][role="button"])`).click();
  }

  /// Writes into the field with this label.
  async fill(label, text) {
    await this.tab.locator(`::-p-xpath(//main//*[@id=//label[starts-with(., "${label}")]/@for])`).fill(text);
  }

  /// Goes on with the tab key alone until what has the focus is named so.
  async tabTo(name) {
    for (let pressed = 0; pressed < 80; pressed += 1) {
      await this.tab.keyboard.press("Tab");
      if (await this.focused() === name) return;
    }
    throw new Error(`the tab key does not reach “${name}”; it ends at “${await this.focused()}”`);
  }

  /// What has the focus, by the name that is read aloud.
  focused() {
    return this.tab.evaluate(() => {
      const at = document.activeElement;
      const label = at.ariaLabel ?? (at.labels?.[0] ? at.labels[0].firstChild.textContent : null);
      return (label ?? at.innerText ?? "").trim();
    });
  }

  /// That what has the focus can be seen to have it.
  async demandVisibleFocus() {
    const outline = await this.tab.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    demand(outline !== "none", `the focus on “${await this.focused()}” cannot be seen`);
  }

  /// Looks at the page in light and dark: takes pictures, and asks axe.
  async look(name) {
    for (const scheme of ["light", "dark"]) {
      await this.tab.emulateMediaFeatures([
        { name: "prefers-color-scheme", value: scheme }, { name: "prefers-reduced-motion", value: "reduce" },
      ]);
      await this.tab.screenshot({ path: join(shots, `${name}-${scheme}.png`), fullPage: true });
      await this.demandUsable(`${name}, ${scheme}`);
    }
    await this.tab.emulateMediaFeatures([{ name: "prefers-reduced-motion", value: "reduce" }]);
  }

  /// The same on a narrow screen, in light alone.
  async lookNarrow(name) {
    const { width, height } = this.tab.viewport();
    await this.tab.setViewport({ width: 390, height: 800 });
    await this.tab.screenshot({ path: join(shots, `${name}-narrow.png`), fullPage: true });
    const isWide = await this.tab.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    demand(!isWide, `${name}: the narrow page scrolls sideways`);
    await this.demandUsable(`${name}, narrow`);
    await this.tab.setViewport({ width, height });
  }

  async demandUsable(what) {
    if (!await this.tab.evaluate(() => "axe" in window)) await this.tab.evaluate(axe);
    const found = await this.tab.evaluate(async () => {
      const { violations, passes } = await window.axe.run(document, { resultTypes: ["violations"] });
      return { passes: passes.length, violations: violations.map(({ id, impact, nodes }) =>
        ({ id, impact, where: nodes.slice(0, 3).map(({ html, failureSummary }) => `${html}\n${failureSummary}`) })) };
    });
    demand(found.passes > 10, `${what}: axe has hardly looked`);
    const grave = found.violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
    for (const { id, where } of found.violations.filter((one) => !grave.includes(one))) console.log(`${what}: minor: ${id}: ${where[0]}`);
    demand(grave.length === 0, `${what}: ${JSON.stringify(grave, null, 2)}`);
  }
}
