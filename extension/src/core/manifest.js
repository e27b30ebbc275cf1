/** The manifest: what a task asks of devices now. The twin of wire/manifest.py; signatures are checked in
 * signing.js. */

import { concat, textOf, utf8 } from "./bytes.js";
import { isObject, parseCanonical } from "./canonical.js";
import { isOrigin } from "./enrolment.js";
import { MessageError } from "./errors.js";

export const FORMAT = "searchblend-manifest";
export const MANIFEST_VERSION = 1;
export const MANIFEST_MINOR = 2;
export const ALGORITHM = "ES256";
export const LARGEST = 64 * 1024;
export const PHASES = Object.freeze(["idle", "opt-in", "client"]);
const SIGNED_PREFIX = utf8("searchblend manifest v1\n");

/** @typedef {{keyId: string, signature: string}} Signature */
/** @typedef {{payload: Uint8Array, signatures: Signature[]}} SignedManifest */
/** @typedef {{public_key: string, consent: string, closes: number, settings?: string, curator?: unknown}} OptinRequest
 * minor version 0 has neither settings nor curator */
/** @typedef {{artifact: string, digest: string, mechanism: string, report_bytes: number, opens: number,
 * closes: number, tokens?: TokenTerms}} ClientRequest */
/** @typedef {{issuer: string, request: string, key: string}} TokenTerms what pays for a report: the issuer's address,
 * the path of requests, its public key */
/** @typedef {{artifact: string, bytes: number, round: number, deltas: Array<{base: string, artifact: string,
 * bytes: number}>, log?: {size: number, root: string}}} OfferedPack packs of earlier versions have no log */
/**
 * @typedef {object} ManifestFields
 * @property {string} format
 * @property {number} version
 * @property {number} minor
 * @property {string} task
 * @property {string} name
 * @property {string} engine
 * @property {string} market
 * @property {number} sequence
 * @property {number} issued
 * @property {number} expires
 * @property {number} round
 * @property {boolean} killed
 * @property {string} min_device_version
 * @property {"skip" | "report_wildcard"} silent_devices
 * @property {"best" | "paper"} method
 * @property {string} epsilon
 * @property {string} delta
 * @property {number} records_per_client
 * @property {number} records_per_optin
 * @property {OfferedPack | null} pack
 * @property {string[]} [gateway] from minor version 2 on
 */
/** @typedef {ManifestFields & {phase: "idle", optin: null, client: null}} IdleManifest */
/** @typedef {ManifestFields & {phase: "opt-in", optin: OptinRequest, client: null}} OptinManifest */
/** @typedef {ManifestFields & {phase: "client", optin: null, client: ClientRequest}} ClientManifest */
/** @typedef {IdleManifest | OptinManifest | ClientManifest} Manifest what decodePayload has checked */
/** @typedef {"text" | "number" | "boolean" | "list" | "object" | "object or null"} Kind */

/** @type {Readonly<Record<string, Kind>>} */
const FIELDS = Object.freeze({
  format: "text",
  version: "number",
  minor: "number",
  task: "text",
  name: "text",
  engine: "text",
  market: "text",
  sequence: "number",
  issued: "number",
  expires: "number",
  phase: "text",
  round: "number",
  killed: "boolean",
  min_device_version: "text",
  silent_devices: "text",
  method: "text",
  epsilon: "text",
  delta: "text",
  records_per_client: "number",
  records_per_optin: "number",
  optin: "object or null",
  client: "object or null",
  pack: "object or null",
  gateway: "list",
});

/** @type {Readonly<Record<string, Readonly<Record<string, Kind>>>>} */
const PARTS = Object.freeze({
  optin: { public_key: "text", consent: "text", closes: "number", settings: "text", curator: "object" },
  client: {
    artifact: "text",
    digest: "text",
    mechanism: "text",
    report_bytes: "number",
    opens: "number",
    closes: "number",
    tokens: "object",
  },
  pack: { artifact: "text", bytes: "number", round: "number", deltas: "list" },
});
/** The minor version that a part's field came with; earlier manifests do without.
 * @type {Readonly<Record<string, number>>} */
const SINCE = Object.freeze({ "optin settings": 1, "optin curator": 1, "client tokens": 2, "manifest gateway": 2 });
/** Fields that need not be there. */
const OPTIONAL = Object.freeze(["client tokens", "manifest gateway"]);
/** @type {Readonly<Record<string, Kind>>} */
const TOKENS = Object.freeze({ issuer: "text", request: "text", key: "text" });
/** @type {Readonly<Record<string, Kind>>} */
const DELTA = Object.freeze({ base: "text", artifact: "text", bytes: "number" });
const MOST_DELTAS = 8;
const MOST_GATEWAY_KEYS = 4;
const ROUNDS = 2 ** 32;

/** @type {ReadonlyArray<[string, string | null, number]>} */
const HEX = Object.freeze([
  ["task", null, 32],
  ["optin", "public_key", 64],
  ["optin", "consent", 64],
  ["client", "artifact", 64],
  ["client", "digest", 64],
  ["pack", "artifact", 64],
]);

/** @type {Readonly<Record<Kind, (value: any) => boolean>>} */
const IS = Object.freeze({
  text: (value) => typeof value === "string",
  number: (value) => Number.isSafeInteger(value),
  boolean: (value) => typeof value === "boolean",
  list: (value) => Array.isArray(value),
  object: (value) => isObject(value),
  "object or null": (value) => value === null || isObject(value),
});

/** What is signed: a prefix of its own and the payload's exact bytes. @param {SignedManifest} signed */
export function signedBytes(signed) {
  return concat(SIGNED_PREFIX, signed.payload);
}

/** The envelope, strictly; the payload is still unread. @param {Uint8Array} message @returns {SignedManifest} */
export function decodeSigned(message) {
  if (message.length > LARGEST) throw new MessageError("manifest: larger than 64 KiB");
  const document = parsed(message);
  if (!isObject(document) || Object.keys(document).sort().join() !== "payload,signatures") {
    throw new MessageError("manifest: expected payload and signatures");
  }
  const { payload, signatures } = document;
  if (
    typeof payload !== "string" ||
    !Array.isArray(signatures) ||
    !(signatures.length >= 1 && signatures.length <= 8)
  ) {
    throw new MessageError("manifest: expected a payload and 1 to 8 signatures");
  }
  return {
    payload: payloadBytes(payload),
    signatures: signatures.map((entry) => decodeSignature(entry, "manifest: signatures")),
  };
}

/** A manifest's fields, each of the right type and none more. @param {Uint8Array} payload @returns {Manifest} */
export function decodePayload(payload) {
  const document = parseCanonical(payload, "manifest");
  if (!isObject(document)) throw new MessageError("manifest: expected an object");
  checkFields(document, askedOf("manifest", FIELDS, document), "manifest");
  if (document.format !== FORMAT || document.version !== MANIFEST_VERSION) {
    throw new MessageError(`manifest: expected ${FORMAT} version ${MANIFEST_VERSION}`);
  }
  for (const [part, fields] of Object.entries(PARTS)) {
    if (document[part] === null) continue;
    checkFields(/** @type {any} */ (document[part]), askedOf(part, fields, document), `manifest: ${part}`);
  }
  checkValues(document);
  return /** @type {Manifest} */ (/** @type {unknown} */ (withoutLaterFields(document)));
}

/** The fields that a part has in the minor version of this manifest. @param {string} part
 * @param {Readonly<Record<string, Kind>>} fields @param {Record<string, any>} document */
function askedOf(part, fields, document) {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => isAsked(part, name, document)));
}

/** @param {string} part @param {string} name @param {Record<string, any>} document */
function isAsked(part, name, document) {
  const minor = IS.number(document.minor) ? Number(document.minor) : MANIFEST_MINOR;
  const given = part === "manifest" ? document : document[part];
  const isKnown = minor >= (SINCE[`${part} ${name}`] ?? 0);
  return isKnown && (!OPTIONAL.includes(`${part} ${name}`) || (isObject(given) && Object.hasOwn(given, name)));
}

/** An earlier minor version does not say what is under the name of a later field.
 * @param {Record<string, any>} document */
function withoutLaterFields(document) {
  if (document.client === null || document.minor >= SINCE["client tokens"]) return document;
  const { tokens: _, ...client } = document.client;
  return { ...document, client };
}

/** @param {Uint8Array} message */
function parsed(message) {
  try {
    return JSON.parse(textOf(message));
  } catch {
    throw new MessageError("manifest: expected a JSON object");
  }
}

/** @param {string} payload */
function payloadBytes(payload) {
  try {
    return utf8(payload);
  } catch {
    throw new MessageError("manifest: payload: a lone surrogate");
  }
}

/** @param {Record<string, any>} document @param {Readonly<Record<string, Kind>>} fields @param {string} where */
function checkFields(document, fields, where) {
  const missing = Object.keys(fields).filter((name) => !Object.hasOwn(document, name));
  const unknown = Object.keys(document).filter((name) => !Object.hasOwn(fields, name));
  // A later minor version may add fields; it must not take any away.
  if (missing.length || (where === "manifest" && unknown.length && !(document.minor > MANIFEST_MINOR))) {
    throw new MessageError(`${where}: wrong fields: ${[...missing, ...unknown].sort().join(", ")}`);
  }
  for (const [name, kind] of Object.entries(fields)) {
    if (!IS[kind](document[name])) throw new MessageError(`${where}: ${name}: wrong type`);
    if (kind === "number" && document[name] < 0) throw new MessageError(`${where}: ${name}: expected 0 or more`);
  }
}

/** @param {Record<string, any>} document */
function checkValues(document) {
  // Reports and sealed records write it in four bytes.
  if (document.round >= ROUNDS) throw new MessageError("manifest: round: expected less than 2^32");
  if (!PHASES.includes(document.phase)) throw new MessageError(`manifest: phase: expected one of ${PHASES.join(", ")}`);
  if (!["skip", "report_wildcard"].includes(document.silent_devices)) {
    throw new MessageError("manifest: silent_devices: expected skip or report_wildcard");
  }
  if (!["best", "paper"].includes(document.method)) throw new MessageError("manifest: method: expected best or paper");
  for (const [part, phase] of [
    ["optin", "opt-in"],
    ["client", "client"],
  ]) {
    if ((document[part] !== null) !== (document.phase === phase)) {
      throw new MessageError(`manifest: ${part}: expected exactly in phase ${phase}`);
    }
  }
  for (const [outer, inner, length] of HEX) {
    const value = inner === null ? document[outer] : document[outer]?.[inner];
    if (value !== undefined && !new RegExp(`^[0-9a-f]{${length}}$`).test(value)) {
      throw new MessageError(`manifest: ${inner ?? outer}: expected ${length} hexadecimal digits`);
    }
  }
  if (document.optin !== null && document.minor >= SINCE["optin curator"]) checkCurator(document.optin);
  if (document.client !== null && isAsked("client", "tokens", document)) checkTokens(document.client.tokens);
  if (isAsked("manifest", "gateway", document)) checkGateway(document.gateway);
  if (document.pack !== null) checkDeltas(document.pack.deltas);
  if (document.pack?.log !== undefined) checkLogHead(document.pack.log);
  for (const name of ["epsilon", "delta"]) {
    if (!/^[0-9]+(\.[0-9]+)?(e-?[0-9]+)?$/.test(document[name])) {
      throw new MessageError(`manifest: ${name}: expected a number written as a text`);
    }
  }
}

/** Who opened the round; the signature itself is checked by those who know the curator's key. @param {any} optin */
function checkCurator({ settings, curator }) {
  if (!/^[0-9a-f]{64}$/.test(settings)) throw new MessageError("manifest: settings: expected 64 hexadecimal digits");
  decodeSignature(curator, "manifest: optin: curator");
}

/** Where tokens are to be had, and how they are signed; the key itself is read when one is asked for.
 * @param {any} tokens */
function checkTokens(tokens) {
  checkFields(tokens, TOKENS, "manifest: client: tokens");
  if (!isOrigin(tokens.issuer)) {
    throw new MessageError("manifest: client: tokens: issuer: expected https://HOST, or http:// on this machine");
  }
  if (!/^\/[A-Za-z0-9._~/-]{0,200}$/.test(tokens.request)) {
    throw new MessageError("manifest: client: tokens: request: expected a path");
  }
  if (!/^[A-Za-z0-9_-]{456}$/.test(tokens.key)) {
    throw new MessageError("manifest: client: tokens: key: expected 342 bytes in base64url");
  }
}

/** How long the public log was when the pack was published, and its root. @param {any} head */
function checkLogHead(head) {
  if (!isObject(head)) throw new MessageError("manifest: pack: log: wrong type");
  checkFields(head, { size: "number", root: "text" }, "manifest: pack: log");
  if (!/^[0-9a-f]{64}$/.test(/** @type {any} */ (head).root)) {
    throw new MessageError("manifest: pack: log: root: expected 64 hexadecimal digits");
  }
}

/** Whose key requests through a relay may be sealed to. @param {any[]} digests */
function checkGateway(digests) {
  const are = digests.every((digest) => typeof digest === "string" && /^[0-9a-f]{64}$/.test(digest));
  if (!are || digests.length > MOST_GATEWAY_KEYS) {
    throw new MessageError(`manifest: gateway: expected at most ${MOST_GATEWAY_KEYS} times 64 hexadecimal digits`);
  }
}

/** How a device may come from an earlier pack to this one. @param {any[]} deltas */
function checkDeltas(deltas) {
  if (deltas.length > MOST_DELTAS || !deltas.every(isObject)) {
    throw new MessageError(`manifest: pack: deltas: expected at most ${MOST_DELTAS} objects`);
  }
  for (const delta of deltas) {
    checkFields(delta, DELTA, "manifest: pack: deltas");
    if (![delta.base, delta.artifact].every((/** @type {any} */ name) => /^[0-9a-f]{64}$/.test(name))) {
      throw new MessageError("manifest: pack: deltas: expected 64 hexadecimal digits");
    }
  }
  if (new Set(deltas.map(({ base }) => base)).size !== deltas.length) {
    throw new MessageError("manifest: pack: deltas: a base twice");
  }
}

/** One signature of a manifest or of a round's key, strictly. @param {any} entry @param {string} where
 * @returns {Signature} */
export function decodeSignature(entry, where) {
  if (!isObject(entry) || Object.keys(entry).sort().join() !== "algorithm,key_id,signature") {
    throw new MessageError(`${where}: expected key_id, algorithm and signature`);
  }
  const { key_id: keyId, algorithm, signature } = entry;
  if (typeof keyId !== "string" || typeof signature !== "string" || algorithm !== ALGORITHM) {
    throw new MessageError(`${where}: expected strings and algorithm ${ALGORITHM}`);
  }
  if (!/^[0-9a-f]{16}$/.test(keyId) || !/^[A-Za-z0-9_-]{86}$/.test(signature)) {
    throw new MessageError(`${where}: expected a key id of 16 hexadecimal digits and 64 bytes in base64url`);
  }
  return { keyId, signature };
}
