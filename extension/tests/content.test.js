/** Which links are results, and where redirectors lead. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import "../src/content/engines.js";
import "../src/content/results.js";

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
  ["google", "https://www.google.com/url?q=https://maps.google.com/", null],
  ["google", "https://webcache.googleusercontent.com/search?q=cache:x", null],
  ["brave", "https://weather.example/", "https://weather.example/"],
  ["brave", "https://search.brave.com/images?q=weather", null],
  ["ecosia", "https://blog.ecosia.org/", null],
  ["startpage", "https://eu-browse.startpage.com/av/proxy?u=x", null],
  [
    "yahoo",
    "https://r.search.yahoo.com/_ylt=A;_ylu=B/RV=2/RE=1/RO=10/RU=https%3a%2f%2fweather.example%2fa%3fb%3d1/RK=2/RS=x-",
    "https://weather.example/a?b=1",
  ],
  ["yahoo", "https://r.search.yahoo.com/_ylt=A/RU=%E0%A4%A/RK=2", null],
  ["yahoo", "https://images.search.yahoo.com/search/images?p=weather", null],
  ["yahoo", "https://finance.yahoo.com/quote/X", "https://finance.yahoo.com/quote/X"],
  ["qwant", "https://www.qwant.com/?q=weather&t=videos", null],
  ["yandex", "https://yandex.ru/clck/jsredir?from=x&etext=1", null],
  ["yandex", "https://market.yandex.ru/x", null],
  ["baidu", "https://www.baidu.com/link?url=bXaYOx_nZgq", null],
  ["baidu", "https://baike.baidu.com/item/x", "https://baike.baidu.com/item/x"],
  ["test-engine", "http://127.0.0.1:8080/engine/out?to=https://weather.example/", "https://weather.example/"],
]) {
  test(`${engine}: ${link.slice(0, 60)}`, () => {
    const url = globalThis.searchblendResults.unwrap(engines[engine], new URL(link));
    assert.equal(url?.href ?? null, expected);
  });
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
