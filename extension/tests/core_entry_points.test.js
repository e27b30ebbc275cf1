/** What ships draws from the platform's generator and from nothing else, and needs nothing but the platform. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Tape } from "./tape.js";
import { core, readVectors } from "./vectors.js";

const SOURCE = fileURLToPath(new URL("../src/", import.meta.url));
const shipped = await core("index");
const { utf8, sha256, toHex } = shipped.bytes;

function filesBelow(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return filesBelow(path);
    return path.endsWith(".js") ? [path] : [];
  });
}

const importsOf = (path) =>
  [
    ...readFileSync(path, "utf8").matchAll(
      /^(?:import|export)\b[^;"'=]*["']([^"']+)["'];|^[^*]*\bimport\(["']([^"']+)["']\)/gm,
    ),
  ].map(([, name, lazy]) => name ?? lazy);
const coreFiles = filesBelow(join(SOURCE, "core"));
const otherFiles = filesBelow(SOURCE).filter((path) => !coreFiles.includes(path));

test("the core imports its own modules only", () => {
  assert.ok(coreFiles.flatMap(importsOf).length > 60);
  for (const path of coreFiles) for (const name of importsOf(path)) assert.match(name, /^\.\/[a-z0-9_]+\.js$/, path);
});

test("whatever ships beside it imports core/index.js and no other module of the core", () => {
  assert.ok(otherFiles.flatMap(importsOf).some((name) => name.endsWith("core/index.js")));
  for (const path of otherFiles) {
    for (const name of importsOf(path)) if (name.includes("core/")) assert.match(name, /core\/index\.js$/, path);
  }
});

test("the core uses no clock, no network, no storage, no page and no other generator", () => {
  const forbidden = new RegExp(
    "\\b(?:Date|Math\\.random|fetch|XMLHttpRequest|document\\.(?:body|createElement)|window|chrome|browser" +
      "|localStorage|indexedDB|process|eval|setTimeout)\\b\\s*[.(]",
  );
  for (const path of coreFiles) {
    const code = readFileSync(path, "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
    assert.doesNotMatch(code, forbidden, path);
  }
});

const HEAD_LIST = readVectors("subset_report").cases.map((one) => one.head_list)[0];

async function exampleMessage(document) {
  const content = utf8(JSON.stringify(document));
  return shipped.readHeadList(content, { artifact: toHex(await sha256(content)), digest: document.digest });
}

test("a source of bytes that is given to an entry point is not used", async () => {
  const message = await exampleMessage(HEAD_LIST);
  const used = [];
  const spy = { take: (n) => (used.push(n), new Uint8Array(n)) };
  const records = [{ query: "google", url: "a" }];
  const task = "00".repeat(16);
  const one = await shipped.makeReport(records, message, task, 7, spy, { randomness: spy });
  const other = await shipped.makeReport(records, message, task, 7, new Tape(new Uint8Array(4096)));
  assert.notDeepEqual(one, other); // the nonces alone have 128 bits
  shipped.randomBelow(10, spy);
  const sealing = { task, round: 7, consent: "00".repeat(32), credential: "sbe_an-enrolment-code-of-26" };
  const publicKey = readVectors("sealed_record").cases[0].public_key;
  const sealed = await Promise.all([0, 1].map(() => shipped.sealRecords(records, sealing, publicKey, async () => spy)));
  assert.notDeepEqual(sealed[0], sealed[1]);
  assert.deepEqual(used, []);
});

test("the generator is the platform's: all draws come from crypto.getRandomValues", async (context) => {
  const message = await exampleMessage(HEAD_LIST);
  const real = crypto.getRandomValues.bind(crypto);
  const calls = context.mock.method(crypto, "getRandomValues", real).mock;
  await shipped.makeReport([{ query: "google", url: "a" }], message, "00".repeat(16), 7);
  assert.ok(calls.callCount() >= 2, "a decision and a nonce");
});

test("an explained report names what was said", async () => {
  for (const one of readVectors("subset_report").cases) {
    const message = await exampleMessage(one.head_list);
    const { parts, id } = await shipped.explainReport(shipped.bytes.fromHex(one.message), message, one.task, one.round);
    assert.equal(id, one.message.slice(-32));
    assert.deepEqual(
      parts.map((part) => [part.aboutQueries, part.items.length]),
      one.parts.map(([about, items]) => [about, items.length]),
    );
    const cells = parts.map((part, i) =>
      part.items.map(
        (item, j) =>
          (part.aboutQueries ? message.head.queries.indexOf(item.query) : message.head.cellOf(item)) ===
            one.parts[i][1][j] || item.query === null,
      ),
    );
    assert.ok(cells.flat().every(Boolean));
  }
});

test("a wrong artifact, digest, task, round or n is refused", async () => {
  const content = utf8(JSON.stringify(HEAD_LIST));
  const artifact = toHex(await sha256(content));
  const { MessageError, InvalidParameter } = shipped.errors;
  await assert.rejects(
    shipped.readHeadList(content, { artifact: "0".repeat(64), digest: HEAD_LIST.digest }),
    MessageError,
  );
  await assert.rejects(shipped.readHeadList(content, { artifact, digest: "0".repeat(64) }), MessageError);
  const message = await exampleMessage(HEAD_LIST);
  const records = [{ query: null, url: null }];
  await assert.rejects(shipped.makeReport(records, message, "00", 7), InvalidParameter);
  await assert.rejects(shipped.makeReport(records, message, "00".repeat(16), 2 ** 32), InvalidParameter);
  await assert.rejects(shipped.makeReport([], message, "00".repeat(16), 7), InvalidParameter);
  for (const n of [0, 2 ** 32, 1.5, NaN]) assert.throws(() => shipped.randomBelow(n), InvalidParameter);
});
