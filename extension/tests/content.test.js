/** Which links are results, and where redirectors lead. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import "../src/content/engines.js";

const engines = Object.fromEntries(globalThis.searchblendEngines.map((engine) => [engine.id, engine]));
const packed = (url) => `a1${Buffer.from(url).toString("base64url")}`;

for (const [engine, link, expected] of [
  ["google", "https://weather.example/a?x=1", "https://weather.example/a?x=1"],
  ["google", "https://www.google.com/url?sa=t&url=https%3A%2F%2Fweather.example%2Fa", "https://weather.example/a"],
  ["google", "https://www.google.de/url?q=http://weather.example/", "http://weather.example/"],
  ["google", "https://www.google.com/aclk?adurl=https://shop.example", null],
  ["google", "https://www.google.com/goto?url=CAESaAHrOzAV", null],
  ["google", "https://maps.google.com/maps?q=weather", null],
  ["google", "https://www.google.com/url?q=javascript:alert(1)", null],
  ["google", "https://www.google.com/url", null],
  ["google", "https://notgoogle.example/", "https://notgoogle.example/"],
  ["bing", "https://weather.example/a", "https://weather.example/a"],
  [
    "bing",
    `https://www.bing.com/ck/a?!&&p=1&u=${packed("https://weather.example/ä?b=1")}&ntb=1`,
    "https://weather.example/%C3%A4?b=1",
  ],
  ["bing", "https://www.bing.com/ck/a?u=a1%%%", null],
  ["bing", "https://www.bing.com/aclick?ld=1", null],
  ["bing", "https://www.bing.com/images/search?q=weather", null],
  ["duckduckgo", "https://duckduckgo.com/l/?uddg=https%3A%2F%2Fweather.example%2F&rut=1", "https://weather.example/"],
  ["duckduckgo", "https://duckduckgo.com/y.js?ad_domain=shop.example", null],
  ["duckduckgo", "https://notduckduckgo.com/", "https://notduckduckgo.com/"],
  ["test-engine", "http://127.0.0.1:8080/engine/out?to=https://weather.example/", "https://weather.example/"],
]) {
  test(`${engine}: ${link.slice(0, 60)}`, () => assert.equal(engines[engine].unwrap(new URL(link)), expected));
}

test("the manifest offers exactly the engines' origins, and never the test engine's", () => {
  const manifest = JSON.parse(readFileSync(new URL("../manifest.json", import.meta.url)));
  const offered = globalThis.searchblendEngines
    .filter(({ id }) => id !== "test-engine")
    .flatMap(({ origins }) => origins);
  assert.deepEqual(manifest.optional_host_permissions, offered);
});

test("every page to watch belongs to an origin", () => {
  for (const { matches, origins } of globalThis.searchblendEngines) {
    for (const match of matches) {
      assert.ok(
        origins.some((origin) => match.startsWith(origin.slice(0, -1))),
        match,
      );
    }
  }
});
