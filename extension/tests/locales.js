/** The messages of _locales for code that runs outside a browser. */

import { readdirSync, readFileSync } from "node:fs";

const FOLDER = new URL("../_locales/", import.meta.url);
export const LOCALES = Object.fromEntries(
  readdirSync(FOLDER).map((name) => [name, JSON.parse(readFileSync(new URL(`${name}/messages.json`, FOLDER), "utf8"))]),
);

/** From now on the browser speaks this language. @param {string} name */
export function speak(name) {
  const getMessage = (key, values = []) =>
    (LOCALES[name][key]?.message ?? "").replace(/\$([1-9])/gu, (_, place) => values[place - 1] ?? "");
  globalThis.chrome = { i18n: { getMessage } };
}
