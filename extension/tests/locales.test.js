/** Every sentence is in _locales, in every language, with the same places for numbers and names. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { REASONS } from "../src/core/policy.js";
import { LOCALES } from "./locales.js";

const SOURCE = new URL("../src/", import.meta.url);
const FOLDERS = ["ui/", "background/", "platform/"];
const files = FOLDERS.flatMap((folder) =>
  readdirSync(new URL(folder, SOURCE)).map((name) => ({
    name,
    content: readFileSync(new URL(folder + name, SOURCE), "utf8"),
  })),
);
const codeOf = (content) => content.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gmu, "");
const scripts = files
  .filter(({ name }) => name.endsWith(".js"))
  .map(({ name, content }) => ({ name, code: codeOf(content) }));
const pages = files.filter(({ name }) => name.endsWith(".html"));
const { en, ...others } = LOCALES;
const placesIn = ({ message }) => [...new Set(message.match(/\$[1-9]/gu) ?? [])].sort();

test("there are English, German and French", () => assert.deepEqual(Object.keys(LOCALES).sort(), ["de", "en", "fr"]));

for (const [language, messages] of Object.entries(others)) {
  test(`${language} has the messages of English, with the same places`, () => {
    assert.deepEqual(Object.keys(messages), Object.keys(en));
    for (const [name, message] of Object.entries(messages)) {
      assert.deepEqual(placesIn(message), placesIn(en[name]), name);
      assert.ok(message.message.length > 0, name);
    }
  });
}

test("browsers take no longer description", () => {
  for (const messages of Object.values(LOCALES)) assert.ok(messages.extension_description.message.length <= 132);
});

test("what is named exists, and what exists is named", () => {
  const named = new Set(["language", "extension_description"]);
  for (const { code } of scripts) {
    for (const [, name] of code.matchAll(/\bmessage\(\s*"(\w+)"/gu)) named.add(name);
    for (const [, name] of code.matchAll(/\bcountedMessage\("(\w+)"/gu))
      ["one", "other"].forEach((end) => named.add(`${name}_${end}`));
    for (const [, condition] of code.matchAll(/\bmessage\(([^()]*\?[^()]*)\)/gu)) {
      for (const [, name] of condition.matchAll(/"(\w+)"/gu)) if (Object.hasOwn(en, name)) named.add(name);
    }
  }
  for (const { content } of pages)
    for (const [, name] of content.matchAll(/data-(?:message|placeholder|label)="(\w+)"/gu)) named.add(name);
  for (const name of named) assert.ok(Object.hasOwn(en, name), name);
  const byCode = /^(?:status|dropped|report|phase|mode|wrong|saved)_/u;
  assert.deepEqual(
    Object.keys(en).filter((name) => !named.has(name) && !byCode.test(name)),
    [],
  );
});

test("every reason of a refusal has its words", () => {
  for (const reason of Object.keys(REASONS)) assert.ok(en[`status_${reason.replaceAll("-", "_")}`], reason);
});

test("no sentence is left in pages or code", () => {
  for (const { name, content } of pages) {
    const words = content
      .replace(/<[^>]*>/gu, " ")
      .split(/\s+/u)
      .filter((word) => word !== "");
    assert.deepEqual([...new Set(words)], ["searchblend"], name);
    assert.doesNotMatch(content, /(?:placeholder|aria-label|title)="(?!\w+")/u, name);
  }
  const literal = /"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/gu;
  for (const { name, code } of scripts) {
    for (const [found] of code.matchAll(literal)) {
      const words = found.replace(/\$\{[^}]*\}/gu, "").match(/\p{L}{2,} \p{L}{2,}/gu) ?? [];
      const isAllowed = /^"(?:new tab|entry report)"$/u.test(found) || found.includes("this page lacks");
      assert.ok(words.length === 0 || isAllowed, `${name}: ${found}`);
    }
  }
});
