/**
 * What the device says to a service: plain requests without cookies, referrer or redirects, and short answers.
 *
 * Whatever a server answers is read up to a limit and believed only after a check: a page of a hotel's network
 * is not a manifest.
 */

import { POLICY, tokenHeader } from "../core/index.js";

/** @import { TokenAccount, TokenTerms } from "../core/index.js" */
/** @import { Enrolment, Fetch, Report, SealedReport } from "./types.d.ts" */

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

  /** @param {Fetch} fetch */
  constructor(fetch) {
    this.#fetch = fetch;
  }

  /** The manifest's bytes. Asked for without an ETag: a server could give every device one of its own.
   * @param {Enrolment} task */
  async manifest(task) {
    const answer = await this.#request(`${task.server}/v1/tasks/${task.task}/manifest`, {});
    if (answer.status !== 200) throw new Unreachable((await problemOf(answer)) ?? statusOf(answer));
    return readAtMost(answer, LARGEST.manifest);
  }

  /** What is below /v1/log; who asked checks it. @param {Enrolment} task @param {string} path @param {number} most */
  async log(task, path, most) {
    const answer = await this.#request(`${task.server}/v1/log/${path}`, {});
    if (answer.status !== 200) throw new Unreachable((await problemOf(answer)) ?? statusOf(answer));
    return readAtMost(answer, most);
  }

  /** The bytes of an artifact; who asked checks their digest.
   * @param {Enrolment} task @param {string} sha256 @param {"headList" | "pack"} kind */
  async artifact(task, sha256, kind) {
    const answer = await this.#request(`${task.server}/v1/artifacts/${sha256}`, {});
    if (answer.status !== 200) throw new Unreachable((await problemOf(answer)) ?? statusOf(answer));
    return readAtMost(answer, LARGEST[kind]);
  }

  /** Send the bytes: "sent", or the reason of a final refusal; throws `Unreachable` when they may be sent again.
   * @param {Enrolment} task @param {Report} report */
  async send(task, report) {
    const [path, type] = report.kind === "sealed" ? ["contributions", TYPES.sealed] : ["reports", TYPES.report];
    /** @type {Record<string, string>} */
    const headers = { "Content-Type": type };
    if (report.kind === "sealed") headers.Authorization = `Bearer ${report.credential}`;
    else if (report.token) headers.Authorization = tokenHeader(report.token);
    const url = `${task.server}/v1/tasks/${task.task}/rounds/${report.round}/${path}`;
    const answer = await this.#request(url, {
      method: "POST",
      headers,
      body: /** @type {BufferSource | null} */ (report.bytes),
    });
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
      body: /** @type {BufferSource} */ (request),
    });
    if (answer.status === 200) return readAtMost(answer, LARGEST.problem);
    const problem = await problemOf(answer);
    if (problem !== null && NO_TOKEN.includes(problem)) return null;
    throw new Unreachable(problem ?? statusOf(answer), retryAfter(answer));
  }

  /** Take a sealed record back: true if the service said that it is gone.
   * @param {Enrolment} task @param {SealedReport} report */
  async withdraw(task, report) {
    const url = `${task.server}/v1/tasks/${task.task}/rounds/${report.round}/contributions`;
    try {
      const answer = await this.#request(url, {
        method: "DELETE",
        headers: { Authorization: `Bearer ${report.credential}` },
      });
      return answer.status === 204;
    } catch (error) {
      if (error instanceof Unreachable) return false;
      throw error;
    }
  }

  /** @param {string} url @param {RequestInit} options */
  async #request(url, options) {
    /** @type {RequestInit} */
    const privately = { cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" };
    try {
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
  try {
    const document = JSON.parse(new TextDecoder().decode(await readAtMost(answer, LARGEST.problem)));
    const problem = /^urn:searchblend:problem:([a-z-]{1,40})$/.exec(document.type);
    if (problem) return problem[1];
  } catch {
    // not a problem document
  }
  return null;
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
