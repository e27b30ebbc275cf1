/** The vectors of vectors/v1 as test cases, and their documents in the core's words. */

import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const CORE = new URL(process.env.SEARCHBLEND_CORE ?? "../src/core/", import.meta.url);
const FOLDER = new URL("../../vectors/v1/", import.meta.url);

/** A module of the core; SEARCHBLEND_CORE exchanges the folder, so that the same tests judge a changed copy. */
export const core = (name) => import(new URL(`${name}.js`, CORE));

export const vectorFiles = () =>
  readdirSync(FOLDER)
    .filter((name) => name.endsWith(".json"))
    .map((name) => name.slice(0, -5));

export const readVectors = (name) => JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), "utf8"));

export const replayed = new Set();

/** One test for all cases of a file; it says which case failed. */
export function replay(name, check, list = "cases") {
  replayed.add(name);
  const document = readVectors(name);
  test(`${name}: ${document[list].length} ${list}`, async () => {
    if (document.version !== 1 || !document[list].length) throw new Error(`${name}: expected cases of version 1`);
    for (const one of document[list]) {
      try {
        await check(one);
      } catch (error) {
        error.message = `${name}: ${one.name}: ${error.message}`;
        throw error;
      }
    }
  });
}
