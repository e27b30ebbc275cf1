/** Firefox over WebDriver BiDi, with patience for work beside it. */

import puppeteer from "puppeteer-core";

/** nothing that goes well waits for it */
export const PATIENCE_MS = 240_000;

export function launchFirefox(executablePath, options = {}) {
  const patience = { timeout: PATIENCE_MS, protocolTimeout: 2 * PATIENCE_MS };
  return puppeteer.launch({ browser: "firefox", executablePath, headless: true, ...patience, ...options });
}

/** A page whose navigation and waiting have the same patience; half a minute is the library's own. */
export async function newPage(browser) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  return page;
}
