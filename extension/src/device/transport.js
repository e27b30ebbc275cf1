/**
 * What the device says to a service: plain requests without cookies, referrer or redirects, and short answers.
 *
 * Through a relay they are sealed (RFC 9458): the service does not see who asks, nor the relay what is said. The
 * gateway's key comes from the relay, which gives all devices the same, and before a manifest that was believed names
 * it nothing but requests for what is public is sealed to it.
 *
 * Whatever a server answers is read up to a limit and believed only after a check: a page of a hotel's network
 * is not a manifest.
 */

import {
  decodeConfigurations,
  decodeResponse,
  encodeRequest,
  errors,
  KEY_PROBLEM,
  LARGEST_KEYS,
  largestResponse,
  MEDIA_TYPES,
  POLICY,
  sealRequest,
  tokenHeader,
} from "../core/index.js";

/** @import { KeyConfiguration, TokenAccount, TokenTerms } from "../core/index.js" */
/** @import { Fetch, Report, SealedReport, Service } from "./types.d.ts" */
/** @typedef {{method?: string, headers?: Record<string, string>, body?: Uint8Array | null}} Asked */

const LARGEST = Object.freeze({
  manifest: POLICY.largestManifest,
  headList: POLICY.largestHeadList,
  pack: POLICY.largestPack,
  problem: 4096,
});
const PATIENCE = 30_000;
/** Statuses after which the same bytes may be sent again, whatever else the service says. */
const AGAIN = Object.freeze([429, 503]);
const TYPES = Object.freeze({
  report: "application/vnd.searchblend.report",
  sealed: "application/vnd.searchblend.sealed",
  token: "application/private-token-request",
});
/** What an issuer says when it gives no token for good, or for this week. */
const NO_TOKEN = Object.freeze(["bad-credential", "unknown-token-key", "token-limit"]);

/** The service could not be reached, or answered nothing that this protocol knows. */
export class Unreachable extends Error {
  /** @param {string} reason @param {number} [retryAfter] seconds */
  constructor(reason, retryAfter = 0) {
    super(reason);
    this.reason = reason;
    this.retryAfter = retryAfter;
  }
}

export class Transport {
  #fetch;
  /** The key that each relay gave out. @type {Map<string, KeyConfiguration>} */
  #keys = new Map();

  /** @param {Fetch} fetch */
  constructor(fetch) {
    this.#fetch = fetch;
  }

  /** The manifest's bytes. Asked for without an ETag: a server could give every device one of its own.
   * @param {Service} task */
  async manifest(task) {
    const answer = await this.#ask(task, `/v1/tasks/${task.task}/manifest`, {}, LARGEST.manifest);
    if (answer.status !== 200) throw new Unreachable((await problemOf(answer)) ?? statusOf(answer));
    return readAtMost(answer, LARGEST.manifest);
  }

  /** What is below /v1/log; who asked checks it. @param {Service} task @param {string} path @param {number} most */
  async log(task, path, most) {
    const answer = await this.#ask(task, `/v1/log/${path}`, {}, most);
    if (answer.status !== 200) throw new Unreachable((await problemOf(answer)) ?? statusOf(answer));
    return readAtMost(answer, most);
  }

  /** The bytes of an artifact; who asked checks their digest.
   * @param {Service} task @param {string} sha256 @param {"headList" | "pack"} kind */
  async artifact(task, sha256, kind) {
    const answer = await this.#ask(task, `/v1/artifacts/${sha256}`, {}, LARGEST[kind]);
    if (answer.status !== 200) throw new Unreachable((await problemOf(answer)) ?? statusOf(answer));
    return readAtMost(answer, LARGEST[kind]);
  }

  /** Send the bytes: "sent", or the reason of a final refusal; throws `Unreachable` when they may be sent again.
   * @param {Service} task @param {Report} report */
  async send(task, report) {
    const [path, type] = report.kind === "sealed" ? ["contributions", TYPES.sealed] : ["reports", TYPES.report];
    /** @type {Record<string, string>} */
    const headers = { "Content-Type": type };
    if (report.kind === "sealed") headers.Authorization = `Bearer ${report.credential}`;
    else if (report.token) headers.Authorization = tokenHeader(report.token);
    const asked = { method: "POST", headers, body: report.bytes };
    const place = `/v1/tasks/${task.task}/rounds/${report.round}/${path}`;
    const answer = await this.#ask(task, place, asked, LARGEST.problem);
    if (answer.status === 200 && (await isEmpty(answer))) return "sent";
    const problem = answer.status >= 400 ? await problemOf(answer) : null;
    // Without a problem document it was no answer of the service: a proxy whose service restarts, a hotel's login page.
    if (problem === null || AGAIN.includes(answer.status)) {
      throw new Unreachable(problem ?? statusOf(answer), retryAfter(answer));
    }
    return problem;
  }

  /** The issuer's answer to a request for a token, or null if it gives none. It learns whose device asks, and nothing
   * of what for. @param {TokenTerms} terms @param {TokenAccount} account @param {Uint8Array} request */
  async issued(terms, account, request) {
    const answer = await this.#request(`${terms.issuer}${terms.request}`, {
      method: "POST",
      headers: { "Content-Type": TYPES.token, Authorization: `Bearer ${account.credential}` },
      body: request,
    });
    if (answer.status === 200) return readAtMost(answer, LARGEST.problem);
    const problem = await problemOf(answer);
    if (problem !== null && NO_TOKEN.includes(problem)) return null;
    throw new Unreachable(problem ?? statusOf(answer), retryAfter(answer));
  }

  /** Take a sealed record back: true if the service said that it is gone.
   * @param {Service} task @param {SealedReport} report */
  async withdraw(task, report) {
    const path = `/v1/tasks/${task.task}/rounds/${report.round}/contributions`;
    const asked = { method: "DELETE", headers: { Authorization: `Bearer ${report.credential}` } };
    try {
      const answer = await this.#ask(task, path, asked, LARGEST.problem);
      return answer.status === 204;
    } catch (error) {
      if (error instanceof Unreachable) return false;
      throw error;
    }
  }

  /** @param {Service} task @param {string} path @param {Asked} asked @param {number} most bytes of the answer
   * @returns {Promise<Response>} */
  async #ask(task, path, asked, most) {
    if (!task.relay) return this.#request(`${task.server}${path}`, asked);
    for (let tries = 0; tries < 2; tries++) {
      const answer = await this.#askSealed(task, task.relay, path, asked, most);
      if (answer !== null) return answer;
      this.#keys.delete(task.relay); // the gateway has another by now
    }
    throw new Unreachable("relay");
  }

  /** The gateway's answer; null if it does not have the key.
   * @param {Service} task @param {string} relay @param {string} path @param {Asked} asked @param {number} most */
  async #askSealed(task, relay, path, { method = "GET", headers = {}, body = null }, most) {
    const key = await this.#key(relay);
    const isPublic = method === "GET" && Object.keys(headers).length === 0;
    if (!isPublic && !task.manifest?.gateway?.includes(key.digest)) {
      this.#keys.delete(relay);
      throw new Unreachable("gateway-key");
    }
    const { protocol, host } = new URL(task.server);
    const fields = Object.entries(headers);
    const content = body ?? new Uint8Array(0);
    const request = { method, scheme: protocol.slice(0, -1), authority: host, path, fields, content };
    try {
      const sealed = await sealRequest(key, encodeRequest(request));
      const outer = await this.#request(`${relay}/`, {
        method: "POST",
        headers: { "Content-Type": MEDIA_TYPES.request },
        body: sealed.message,
      });
      if (outer.status === 400 && (await typeOf(outer)) === KEY_PROBLEM) return null;
      if (outer.status !== 200 || mediaType(outer) !== MEDIA_TYPES.response) {
        throw new Unreachable("relay", retryAfter(outer));
      }
      const answer = decodeResponse(await sealed.open(await readAtMost(outer, largestResponse(most))));
      return new Response(answer.content.length ? /** @type {BodyInit} */ (answer.content) : null, {
        status: answer.status,
        headers: Object.fromEntries(answer.fields),
      });
    } catch (error) {
      if (error instanceof errors.MessageError) throw new Unreachable("relay");
      throw error;
    }
  }

  /** @param {string} relay */
  async #key(relay) {
    const known = this.#keys.get(relay);
    if (known) return known;
    const answer = await this.#request(`${relay}/`, {});
    if (answer.status !== 200 || mediaType(answer) !== MEDIA_TYPES.keys) throw new Unreachable("relay");
    try {
      const [key] = await decodeConfigurations(await readAtMost(answer, LARGEST_KEYS));
      this.#keys.set(relay, key);
      return key;
    } catch (error) {
      if (error instanceof errors.MessageError) throw new Unreachable("relay");
      throw error;
    }
  }

  /** @param {string} url @param {Asked} asked */
  async #request(url, asked) {
    /** @type {RequestInit} */
    const privately = { cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" };
    try {
      const options = { ...asked, body: /** @type {BodyInit | null | undefined} */ (asked.body) };
      return await this.#fetch(url, { ...privately, ...options, signal: AbortSignal.timeout(PATIENCE) });
    } catch {
      throw new Unreachable("no-answer");
    }
  }
}

/** @param {Response} answer @param {number} most */
async function readAtMost(answer, most) {
  const parts = [];
  let size = 0;
  try {
    if (answer.body === null) throw new Unreachable("no-answer");
    const reader = answer.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > most) {
        await reader.cancel();
        throw new Unreachable("too-large");
      }
      parts.push(value);
    }
  } catch (error) {
    throw error instanceof Unreachable ? error : new Unreachable("no-answer");
  }
  const content = new Uint8Array(size);
  let offset = 0;
  for (const part of parts) {
    content.set(part, offset);
    offset += part.length;
  }
  return content;
}

/** The name of a problem document, or null for an answer that is not one. @param {Response} answer */
async function problemOf(answer) {
  const problem = /^urn:searchblend:problem:([a-z-]{1,40})$/.exec(await typeOf(answer));
  return problem ? problem[1] : null;
}

/** What a problem document says that it is; empty for an answer that is none. @param {Response} answer */
async function typeOf(answer) {
  try {
    const document = JSON.parse(new TextDecoder().decode(await readAtMost(answer, LARGEST.problem)));
    return String(document.type);
  } catch {
    return ""; // not a problem document
  }
}

/** @param {Response} answer */
function mediaType(answer) {
  return (answer.headers.get("Content-Type") ?? "").split(";")[0].trim().toLowerCase();
}

/** @param {Response} answer */
function statusOf(answer) {
  return `status-${answer.status}`;
}

/** @param {Response} answer */
async function isEmpty(answer) {
  return answer.body === null || (await readAtMost(answer, LARGEST.problem)).length === 0;
}

/** @param {Response} answer */
function retryAfter(answer) {
  const seconds = Number(answer.headers.get("Retry-After"));
  return Number.isInteger(seconds) && seconds > 0 ? Math.min(seconds, 86_400) : 0;
}
