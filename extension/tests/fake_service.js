/** A service that signs what it is told to, honest or not, and writes down what it gets. */

import { canonicalJson } from "../src/core/canonical.js";
import { taskConsent } from "../src/core/consent.js";
import { concat, sha256, textOf, toHex, utf8 } from "../src/core/bytes.js";
import { keyId, POLICY } from "../src/core/index.js";
import { decodeHeadList } from "../src/core/head_list.js";
import { signedResult } from "../src/core/optin_result.js";
import { leafHash, rootOf, TILE } from "../src/core/merkle.js";
import { HeadList } from "../src/core/records.js";
import { ReportShape } from "../src/core/report.js";
import { signedRoundKey } from "../src/core/round_key.js";
import { entryOf } from "../src/core/transparency.js";
import { ladderKeyPair } from "../src/core/x25519.js";

export const TASK = "0123456789abcdef0123456789abcdef";
export const CONSENT = "I agree.";
/** What makes a list long enough for a device to answer. */
export const FILLERS = Array.from({ length: POLICY.fewestQueries }, (_, i) => [`filler ${i}`, []]);
const SIGNING = { name: "ECDSA", namedCurve: "P-256" };

export class FakeService {
  posts = [];
  asked = [];
  artifacts = new Map();
  /** what is in the public log */
  entries = [];
  origin = "searchblend/tests";
  answer = () => new Response(null, { status: 200 });

  /** A curator that signs the rounds of this service from now on; its public point. */
  async addCurator() {
    this.curator = await crypto.subtle.generateKey(SIGNING, true, ["sign", "verify"]);
    return new Uint8Array(await crypto.subtle.exportKey("raw", this.curator.publicKey));
  }

  static async start(now) {
    const service = new FakeService();
    service.now = now;
    service.pair = await crypto.subtle.generateKey(SIGNING, true, ["sign", "verify"]);
    service.point = new Uint8Array(await crypto.subtle.exportKey("raw", service.pair.publicKey));
    await service.list([
      ["weather", ["https://weather.example/a", "https://weather.example/b"]],
      ["news", ["https://news.example"]],
      ...FILLERS,
    ]);
    return service;
  }

  get enrolment() {
    return { server: "https://lists.example", task: TASK, keys: [toHex(this.point)], consent: CONSENT };
  }

  /** Make the head list that phase client speaks of; the rounds that publish it have it drawn for them. */
  async list(queries, changes = {}) {
    this.listed = { queries, changes };
    await this.#drawList({ round: 1, epsilon: "4", delta: "0.00001" });
  }

  async #drawList(drawnBy) {
    const { queries, changes } = this.listed;
    const head = new HeadList(queries);
    const document = {
      format: "searchblend-headlist",
      version: 1,
      method: "paper",
      epsilon: 4,
      delta: 0.00001,
      query_budget_fraction: 0.85,
      records_per_client: 1,
      digest: await head.digest(),
      queries,
      optin_result: await this.#drawn(head, drawnBy),
      ...changes,
    };
    const content = utf8(JSON.stringify(document));
    const artifact = toHex(await sha256(content));
    this.artifacts.set(artifact, content);
    const { head: read, params } = await decodeHeadList(document).catch(() => ({}));
    const bytes = read ? (await ReportShape.of(new Uint8Array(16), 1, read, params, null)).size : 100;
    this.client = {
      artifact,
      digest: document.digest,
      mechanism: "two-stage",
      report_bytes: bytes,
      opens: this.now - 10,
      closes: this.now + 1000,
    };
  }

  /** The curator's word for a list of one round. */
  async #drawn(head, drawnBy) {
    this.drawer ??= await crypto.subtle.generateKey(SIGNING, true, ["sign", "verify"]);
    const { privateKey, publicKey } = this.curator ?? this.drawer;
    const key = new Uint8Array(await crypto.subtle.exportKey("raw", publicKey));
    const salts = head.asJson().map(([, urls]) => [null, ...urls].map(() => toHex(randomBytes(16))));
    const unsigned = { salts, removed: [], key: toHex(key) };
    const content = await signedResult(unsigned, head, { task: TASK, ...drawnBy });
    const made = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, privateKey, content);
    const signature = Buffer.from(made).toString("base64url");
    return { ...unsigned, curator: { key_id: await keyId(key), algorithm: "ES256", signature } };
  }

  /** Publish a manifest; `changes` may be anything a bad operator would write, `swapped` what came after the curator
   * signed. */
  async publish({ swapped = {}, ...changes } = {}) {
    this.sequence = changes.sequence ?? (this.sequence ?? 0) + 1;
    const phase = changes.phase ?? "client";
    const drawnBy = { round: 1, epsilon: "4", delta: "0.00001" };
    for (const field of Object.keys(drawnBy)) drawnBy[field] = changes[field] ?? drawnBy[field];
    if (phase === "client") await this.#drawList(drawnBy);
    this.manifest = {
      format: "searchblend-manifest",
      version: 1,
      minor: 0,
      task: TASK,
      name: "test list",
      engine: "any",
      market: "any",
      sequence: this.sequence,
      issued: this.now,
      expires: this.now + 86_400,
      phase,
      round: 1,
      killed: false,
      min_device_version: "0.1",
      silent_devices: "skip",
      method: "paper",
      epsilon: "4",
      delta: "0.00001",
      records_per_client: 1,
      records_per_optin: 1,
      optin: null,
      pack: null,
      client: phase === "client" ? this.client : null,
      ...changes,
      ...(changes.client ? { client: { ...this.client, ...changes.client } } : {}),
    };
    if (this.curator && this.manifest.optin) await this.#signRound();
    Object.assign(this.manifest, swapped);
    const payload = textOf(canonicalJson(this.manifest));
    const signature = await crypto.subtle.sign(
      { name: "ECDSA", hash: "SHA-256" },
      this.pair.privateKey,
      utf8(`searchblend manifest v1\n${payload}`),
    );
    const text = Buffer.from(signature).toString("base64url");
    this.entries.push(await entryOf(this.manifest));
    this.message = utf8(
      JSON.stringify({
        payload,
        signatures: [{ key_id: await keyId(this.point), algorithm: "ES256", signature: text }],
      }),
    );
  }

  async #signRound() {
    this.manifest = {
      ...this.manifest,
      minor: Math.max(1, this.manifest.minor),
      optin: { ...this.manifest.optin, settings: "00".repeat(32) },
    };
    const point = new Uint8Array(await crypto.subtle.exportKey("raw", this.curator.publicKey));
    const made = await crypto.subtle.sign(
      { name: "ECDSA", hash: "SHA-256" },
      this.curator.privateKey,
      signedRoundKey(this.manifest),
    );
    const signature = Buffer.from(made).toString("base64url");
    this.manifest.optin.curator = { key_id: await keyId(point), algorithm: "ES256", signature };
  }

  async log(path) {
    if (path === "checkpoint") return new Response(await this.checkpoint());
    const [, tile, width] = /^tile\/0\/([0-9]{3})(?:\.p\/([0-9]+))?$/u.exec(path);
    const first = Number(tile) * TILE;
    return new Response(concat(...(await this.leaves()).slice(first, first + Number(width ?? TILE))));
  }

  leaves() {
    return Promise.all(this.entries.map(leafHash));
  }

  async checkpoint() {
    const leaves = await this.leaves();
    const root = Buffer.from(await rootOf(leaves)).toString("base64");
    const text = `${this.origin}\n${leaves.length}\n${root}\n`;
    const signed = utf8(`searchblend checkpoint v1\n${text}`);
    const made = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, this.pair.privateKey, signed);
    const named = concat(utf8(`${this.origin}\n`), Uint8Array.of(255), utf8("searchblend/es256"), this.point);
    const line = concat((await sha256(named)).slice(0, 4), new Uint8Array(made));
    return utf8(`${text}\n— ${this.origin} ${Buffer.from(line).toString("base64")}\n`);
  }

  /** Publish a phase opt-in. */
  async publishOptin(changes = {}) {
    this.roundKey = ladderKeyPair(crypto.getRandomValues(new Uint8Array(32)));
    const key = toHex(this.roundKey.publicKey);
    const text = changes.text ?? taskConsent(changes.records_per_optin ?? 1, CONSENT);
    const consent = toHex(await sha256(utf8(text)));
    const { text: _, ...rest } = changes;
    await this.publish({ phase: "opt-in", optin: { public_key: key, consent, closes: this.now + 1000 }, ...rest });
  }

  fetch = async (url, options = {}) => {
    const { pathname } = new URL(url);
    this.asked.push({ url, options });
    if (options.method === "POST" || options.method === "DELETE") {
      const round = Number(/rounds\/(\d+)\//u.exec(pathname)[1]);
      this.posts.push({
        method: options.method,
        round,
        path: pathname,
        body: options.body ? toHex(options.body) : null,
        headers: options.headers,
      });
      return this.answer(this.posts.length);
    }
    if (pathname.startsWith("/v1/log/")) return this.log(pathname.slice("/v1/log/".length));
    if (pathname.endsWith("/manifest")) return new Response(this.message);
    const found = this.artifacts.get(pathname.split("/").at(-1));
    return found ? new Response(found) : new Response(null, { status: 404 });
  };
}

const randomBytes = (n) => crypto.getRandomValues(new Uint8Array(n));

/** Locks as browsers have them: one work at a time for each name. */
export function locks() {
  const queues = new Map();
  return (name, work) => {
    const result = (queues.get(name) ?? Promise.resolve()).then(work);
    queues.set(
      name,
      result.catch(() => undefined),
    );
    return result;
  };
}
