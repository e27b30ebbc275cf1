/**
 * Firefox over WebDriver BiDi: consent in the settings, a click on a result, a report.
 *
 * Reads {firefox, extension, engine, link, screenshot} as JSON from the first argument; prints what the extension
 * says about itself at each step as JSON lines. Commands come as lines on the standard input: check, send, quit.
 */

import { createInterface } from "node:readline";
import { launchFirefox, newPage, PATIENCE_MS } from "./patient.js";

const wanted = JSON.parse(process.argv[2]);
const UUID = "6f1b2a34-8a53-4c1e-9d0f-0123456789ab";

const browser = await launchFirefox(wanted.firefox, {
  args: ["--remote-allow-system-access"], // else it may not open pages of extensions
  extraPrefsFirefox: {
    // The address of the extension's pages is random for each installation; a test has to know it.
    "extensions.webextensions.uuids": JSON.stringify({ "extension@searchblend.example": UUID }),
    "dom.disable_open_during_load": false,
  },
});

try {
  await browser.installExtension(wanted.extension);
  const options = await newPage(browser);
  // The page loads, but no event of it arrives: pages of extensions are another process, which the protocol does
  // not follow.
  await options.goto(`moz-extension://${UUID}/src/ui/options.html`, { timeout: 3000 }).catch(() => undefined);
  await settled(options);
  await consent(options, wanted.link);
  say({ step: "consent", state: await text(options, "#state"), message: await text(options, "#message") });
  for (const [query, link] of wanted.searches) {
    // A tab of its own: going on in the same one can be taken for the click's navigation, which never ends.
    const page = await newPage(browser);
    await page.goto(`${wanted.engine}/engine/search?q=${encodeURIComponent(query)}`);
    const before = await noticed(options);
    await page.click(link).catch(() => undefined); // the result's host does not exist
    await until(async () => (await noticed(options)) > before);
    await page.close();
  }
  await press(options, "#check");
  say({
    step: "searches",
    records: await options.$$eval("#records li span:first-child", (items) => items.map((item) => item.textContent)),
  });
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === "quit") break;
    await press(options, line === "send" ? ".send-now" : "#check");
    say({
      step: line,
      status: await text(options, ".task-status"),
      reports: await options.$$eval(".report", (items) => items.map((item) => item.dataset.status)),
    });
  }
  if (wanted.screenshot) await options.screenshot({ path: wanted.screenshot, fullPage: true });
} finally {
  await browser.close();
  process.stdin.destroy(); // else it would be waited for
}

async function consent(page, link) {
  await page.type("[name=link]", link);
  await press(page, "#enrol button");
  await press(page, "#offer .main");
  await page.click("[name=mode][value=local]");
  await page.click("#engine-test-engine");
  await press(page, "#agree");
}

async function press(page, selector) {
  await page.click(selector);
  await settled(page);
}

/** How many searches the device has kept or dropped: a click is told to a background page that may have to wake
 * first. */
async function noticed(page) {
  return page.evaluate(async () => {
    const { theDevice } = await import("../platform/make_device.js");
    const device = await theDevice();
    const dropped = Object.values((await device.settings()).dropped ?? {});
    return (await device.overview()).records.length + dropped.reduce((sum, n) => sum + n, 0);
  });
}

async function until(holds) {
  const giveUp = Date.now() + PATIENCE_MS;
  while (!(await holds()) && Date.now() < giveUp) await new Promise((resolve) => setTimeout(resolve, 50));
}

async function settled(page) {
  await page.waitForSelector("body[data-ready=yes]");
}

async function text(page, selector) {
  return page.$eval(selector, (element) => element.textContent);
}

function say(document) {
  process.stdout.write(`${JSON.stringify(document)}\n`);
}
