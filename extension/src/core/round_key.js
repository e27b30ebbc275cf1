/** What a curator signs when it opens a round: the key that records are sealed to, and what it will be used for. The
 * twin of RoundKey in wire/signing.py; signatures are checked in signing.js. */

import { concat, utf8 } from "./bytes.js";
import { canonicalJson } from "./canonical.js";

const SIGNED_PREFIX = utf8("searchblend round key v1\n");

/** The signed bytes of a manifest in phase opt-in, from minor version 1 on.
 * @param {import("./manifest.js").OptinManifest} manifest */
export function signedRoundKey({ task, round, epsilon, delta, records_per_optin, optin }) {
  const { public_key, consent, closes, settings } = optin;
  const document = { task, round, epsilon, delta, records_per_optin, public_key, consent, closes, settings };
  return concat(SIGNED_PREFIX, canonicalJson(document));
}
