/** The twin in Firefox, over WebDriver BiDi: questions as one JSON list on the input, answers as one on the output. */

import { launchFirefox, newPage } from "./firefox/patient.js";

const [firefox, address] = process.argv.slice(2);
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const browser = await launchFirefox(firefox);
try {
  const page = await newPage(browser);
  await page.goto(address);
  await page.waitForFunction(() => window.ask !== undefined);
  const questions = Buffer.concat(chunks).toString("utf8");
  process.stdout.write(
    await page.evaluate(async (text) => JSON.stringify(await window.ask(JSON.parse(text))), questions),
  );
} finally {
  await browser.close();
}
