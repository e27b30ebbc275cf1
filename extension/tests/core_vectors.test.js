/** Replays vectors/v1: what every implementation of the protocol must make, read and refuse. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Tape } from "./tape.js";
import { core, readVectors, replay, replayed, vectorFiles } from "./vectors.js";

const { admit } = await core("admission");
const { fromHex, sha256, textOf, toHex, utf8 } = await core("bytes");
const { decodeRequest, decodeResponse, encodeRequest, encodeResponse } = await core("binary_http");
const { readEnrolment } = await core("enrolment");
const errors = await core("errors");
const { decodeHeadList, readHeadList } = await core("head_list");
const hpke = await core("hpke");
const { localReport } = await core("local_report");
const { blind, finalize } = await core("blind_rsa");
const { challengeDigest, isRequestFor, makeTokenRequest, readTokenKey, tokenOf } = await core("tokens");
const { normalize, normalizeUrl } = await core("normalize");
const { decodePack, encodePack } = await core("pack");
const { applyDelta } = await core("pack_delta");
const { decodeOptinResult, signedResult } = await core("optin_result");
const { decodeConfigurations, sealRequest } = await core("ohttp");
const { ReportParams } = await core("params");
const policy = await core("policy");
const { HeadList } = await core("records");
const { countersOf, decodeReport, encodeReport, ReportShape } = await core("report");
const { ReportProbabilities } = await core("report_probabilities");
const { contributorTag, openRecords, sealRecords } = await core("sealed");
const { openPack } = await core("search");
const { verifySignedPack } = await core("signed_pack");
const { isDrawnByCurator, isRoundKeySigned, pinnedKeys, verifyManifest } = await core("signing");
const { signedRoundKey } = await core("round_key");
const { subsetReport } = await core("subset_report");
const { suspicions } = await core("suspects");
const { checkLog, verifyCheckpoint } = await core("transparency");
const { ladderKeyPair, platformKeyPair, platformKeyPairOf } = await core("x25519");

/** Vectors of what the collecting side computes; no device does. */
const COLLECTOR = ["bad_report", "blend", "estimate_client", "estimate_optin", "projection"];

const paramsOf = ({ params: p }) =>
  new ReportParams({
    epsilon: p.epsilon,
    delta: p.delta,
    queryBudgetFraction: p.query_budget_fraction,
    recordsPerClient: p.records_per_client,
  });
const recordsOf = (pairs) => pairs.map(([query, url]) => ({ query, url: url ?? null }));
const partsOf = (pairs) => pairs.map(([aboutQueries, items]) => ({ aboutQueries, items }));
const shapeOf = ({ shape: s }) =>
  new ReportShape({
    task: fromHex(s.task),
    round: s.round,
    digest: fromHex(s.digest),
    suite: s.suite,
    records: s.records,
    queryItems: s.query_items,
    querySubset: s.query_subset,
    cellItems: s.cell_items,
    cellSubset: s.cell_subset,
  });

async function refused(kind, says, run) {
  await assert.rejects(run, (error) => {
    assert.ok(error instanceof kind, `${error.name}: ${error.message}`);
    assert.ok(error.message.includes(says), error.message);
    return true;
  });
}

replay(
  "normalize",
  ({ in: text, out }) => {
    assert.equal(normalize(text), out);
    if (out !== null) assert.equal(normalize(out), out);
  },
  "queries",
);
replay(
  "normalize",
  ({ in: text, out, host_only: hostOnly }) => {
    assert.equal(normalizeUrl(text, { hostOnly }), out);
    if (out !== null) assert.equal(normalizeUrl(out, { hostOnly }), out);
  },
  "urls",
);

replay("suspects", ({ in: text, out }) => assert.deepEqual(suspicions(text), out), "texts");
replay("suspects", ({ query, url, out }) => assert.deepEqual(admit(query, url), out), "searches");

replay("report_probabilities", (one) => {
  const found = ReportProbabilities.of(new HeadList(one.queries), paramsOf(one));
  assert.equal(String(found.keepQueryBelow), one.keep_query_below);
  assert.deepEqual(found.keepRecordBelow.map(String), one.keep_record_below);
});
replay("bad_report_probabilities", (one) =>
  refused(errors.InvalidParameter, one.says, async () =>
    ReportProbabilities.of(new HeadList(one.queries), paramsOf(one)),
  ),
);
replay("local_report", (one) => {
  const tape = new Tape(fromHex(one.tape));
  const report = localReport(recordsOf(one.records), new HeadList(one.queries), paramsOf(one), tape);
  assert.deepEqual(report, one.report);
  assert.equal(tape.left, 0);
});
replay("subset_report", async (one) => {
  const { head, params, design } = await decodeHeadList(one.head_list);
  const tape = new Tape(fromHex(one.tape));
  const parts = subsetReport(recordsOf(one.records), head, design, params, tape);
  assert.deepEqual(parts, partsOf(one.parts));
  assert.equal(tape.left, 0);
  const shape = await ReportShape.of(fromHex(one.task), one.round, head, params, design);
  assert.equal(toHex(await encodeReport(parts, shape, new Tape(fromHex(one.nonce)))), one.message);
});

replay("head_list", async (one) => {
  const { head, params, design } = await decodeHeadList(one.document);
  assert.equal(await head.digest(), one.digest);
  assert.equal(head.nQueries, one.n_queries);
  assert.deepEqual([...head.nUrls], one.n_urls);
  assert.equal(head.nCells, one.n_cells);
  const cells = one.cells.map(([query, url]) => ({ query, url }));
  assert.deepEqual(
    cells.map((_, cell) => head.recordOfCell(cell)),
    cells,
  );
  assert.deepEqual(
    cells.map((cell) => head.cellOf(cell)),
    cells.map((_, cell) => cell),
  );
  assert.equal((await ReportShape.of(new Uint8Array(16), 7, head, params, design)).size, one.report_bytes);
});
replay("bad_head_list", (one) => refused(errors.MessageError, one.says, () => decodeHeadList(one.document)));

replay("report_shape", async (one) => {
  const { head, params, design } = await decodeHeadList(one.head_list);
  const shape = await ReportShape.of(fromHex(one.task), one.round, head, params, design);
  assert.deepEqual({ ...shape }, { ...shapeOf(one) });
  const { items, width, size, nCounters: n_counters, countsPerReport: counts_per_report } = shape;
  const expected = Object.fromEntries(
    ["items", "width", "size", "n_counters", "counts_per_report"].map((name) => [name, one[name]]),
  );
  assert.deepEqual({ items, width, size, n_counters, counts_per_report }, expected);
});
replay("report_bytes", async (one) => {
  const shape = shapeOf(one);
  const parts = partsOf(one.parts);
  assert.equal(toHex(await encodeReport(parts, shape, new Tape(fromHex(one.nonce)))), one.message);
  const decoded = await decodeReport(fromHex(one.message), shape);
  assert.deepEqual(decoded.parts, parts);
  assert.equal(toHex(decoded.id), one.message.slice(-32));
  assert.equal(one.message.length / 2, shape.size);
  assert.equal(countersOf(parts, shape).length, one.counts_per_report);
});
replay("bad_report_bytes", (one) =>
  assert.rejects(decodeReport(fromHex(one.message), shapeOf(one)), (error) => {
    assert.ok(error instanceof errors.ReportRefused);
    assert.equal(error.reason, one.reason);
    return true;
  }),
);

const contextOf = (one) => ({ task: fromHex(one.task), round: one.round, consent: fromHex(one.consent) });
replay("sealed_record", async (one) => {
  assert.equal(toHex(await contributorTag(contextOf(one), one.credential)), one.tag);
  const records = recordsOf(one.records);
  const pairs = [ladderKeyPair(fromHex(one.private_key)), await platformKeyPairOf(fromHex(one.private_key))];
  for (const pair of pairs) {
    assert.equal(toHex(pair.publicKey), one.public_key);
    assert.deepEqual(
      await openRecords(fromHex(one.message), contextOf(one), fromHex(one.tag), pair, one.at_most),
      records,
    );
  }
  const ephemerals = [platformKeyPair, async () => ladderKeyPair(crypto.getRandomValues(new Uint8Array(32)))];
  for (const ephemeral of ephemerals) {
    const again = await sealRecords(records, contextOf(one), fromHex(one.tag), fromHex(one.public_key), ephemeral);
    assert.equal(again.length, one.message.length / 2);
    assert.deepEqual(await openRecords(again, contextOf(one), fromHex(one.tag), pairs[0], one.at_most), records);
  }
});
replay("blind_rsa", async (one) => {
  const key = { n: BigInt(`0x${one.n}`), e: BigInt(`0x${one.e}`) };
  // The vector has the inverse of r alone; r is what takes the blinding of the signature off.
  const r = inverse(BigInt(`0x${one.inv}`), key.n);
  const given = (name) => fromHex(one[name]);
  const tape = new Tape(new Uint8Array([...given("salt"), ...fromHex(r.toString(16).padStart(one.n.length, "0"))]));
  const blinded = await blind(given("msg"), key, tape);
  assert.equal(toHex(blinded.content), one.blinded_msg);
  assert.equal(toHex(blinded.inverse), one.inv);
  assert.equal(toHex(finalize(given("blind_sig"), blinded.inverse, key)), one.sig);
  for (const wrong of [given("n"), given("blind_sig").slice(1)]) {
    assert.throws(() => finalize(wrong, blinded.inverse, key), errors.MessageError);
  }
});

function inverse(value, n) {
  let [a, b, x, y] = [value, n, 1n, 0n];
  while (b > 0n) [a, b, x, y] = [b, a % b, y, x - (a / b) * y];
  return ((x % n) + n) % n;
}

replay("token", async (one) => {
  const key = await readTokenKey(fromHex(one.key));
  const digest = await sha256(fromHex(one.challenge));
  const tape = new Tape(fromHex(one.nonce + one.salt + one.blind));
  const request = await makeTokenRequest(key, digest, tape);
  assert.equal(toHex(request.request), one.request);
  assert.equal(isRequestFor(request, key, digest), true);
  assert.equal(isRequestFor(request, key, fromHex("00".repeat(32))), false);
  assert.equal(toHex(await tokenOf(request, fromHex(one.response), key)), one.token);
  for (const position of [0, 255]) {
    const wrong = fromHex(one.response);
    wrong[position] ^= 1;
    await refused(errors.MessageError, "token", () => tokenOf(request, wrong, key));
  }
  const other = fromHex(one.key);
  other[40] ^= 1;
  await refused(errors.MessageError, "token key", () => readTokenKey(other));
});

replay("token_challenge", async (one) => {
  assert.equal(toHex(await challengeDigest(one.issuer, one.task, one.round)), one.digest);
});

replay("bad_sealed_record", (one) =>
  refused(errors.MessageError, one.says, () =>
    openRecords(
      fromHex(one.message),
      contextOf(one),
      fromHex(one.tag),
      ladderKeyPair(fromHex(one.private_key)),
      one.at_most,
    ),
  ),
);

const pinnedOf = (one) => Object.fromEntries(Object.entries(one.pinned).map(([id, point]) => [id, fromHex(point)]));
replay("manifest", async (one) => {
  assert.deepEqual(await verifyManifest(utf8(one.message), pinnedOf(one)), one.manifest);
  await refused(errors.MessageError, "pinned key", () => verifyManifest(utf8(one.message), {}));
});
replay("round_key", async (one) => {
  assert.equal(toHex(signedRoundKey(one.manifest)), one.signed);
  assert.equal(await isRoundKeySigned(one.manifest, pinnedOf(one)), true);
  assert.equal(await isRoundKeySigned(one.manifest, {}), false);
});
replay("bad_round_key", async (one) => assert.equal(await isRoundKeySigned(one.manifest, pinnedOf(one)), false));
replay("bad_manifest", (one) =>
  refused(errors.MessageError, one.says, () => verifyManifest(utf8(one.message), pinnedOf(one))),
);

const isDrawn = async (one, curators = one.curators) =>
  isDrawnByCurator(decodeOptinResult(one.result), new HeadList(one.queries), one.drawn_by, await pinnedKeys(curators));
replay("optin_result", async (one) => {
  const signed = textOf(await signedResult(decodeOptinResult(one.result), new HeadList(one.queries), one.drawn_by));
  assert.ok(signed.includes(`"root":"${one.root}"`), signed);
  assert.equal(await isDrawn(one), true);
  assert.equal(await isDrawn(one, [`04${"ab".repeat(64)}`]), false);
});
replay("bad_optin_result", async (one) => {
  if (one.says) await refused(errors.MessageError, one.says, async () => decodeOptinResult(one.result));
  else assert.equal(await isDrawn(one), false);
});

async function refusalOf(one) {
  if (one.ask === "budget") return policy.withinBudget(one.recent, one.ever, one.own) ? null : "over-budget";
  try {
    policy.checkRequest(one.manifest);
    if (one.ask === "list") {
      const message = await readHeadList(utf8(one.list), one.manifest.client);
      await policy.checkHeadList(message, one.manifest, await pinnedKeys(one.curators));
    }
    return null;
  } catch (error) {
    assert.ok(error instanceof errors.PolicyRefused, `${error.name}: ${error.message}`);
    return error.reason;
  }
}
replay("policy", async (one) => assert.equal(await refusalOf(one), one.refused));

replay("checkpoint", async (one) => {
  assert.ok(one.note.startsWith((await verifyCheckpoint(utf8(one.note), pinnedOf(one))).text));
  await refused(errors.MessageError, "pinned key", () => verifyCheckpoint(utf8(one.note), {}));
});
replay("bad_checkpoint", (one) =>
  refused(errors.MessageError, one.says, () => verifyCheckpoint(utf8(one.note), pinnedOf(one))),
);
replay("log", async (one) => {
  const read = async (path) => new Uint8Array(Buffer.from(one.files[path], "base64"));
  const asked = () => checkLog(one.manifest, one.last, read, pinnedOf(one));
  if (one.refused === null) assert.deepEqual(await asked(), one.remembered);
  else await assert.rejects(asked, (error) => (assert.equal(error.reason, one.refused), true));
});

const entriesOf = (rows) =>
  rows.map(([query, lower, probability, urls]) => ({
    query,
    lower,
    probability,
    urls: urls.map(([url, low, share]) => ({ url, lower: low, probability: share })),
  }));
replay("pack", async (one) => {
  const pack = decodePack(fromHex(one.pack));
  const { fraction_bits: fractionBits, ...info } = one.info;
  assert.deepEqual({ ...pack.info }, { ...info, fractionBits });
  assert.deepEqual(pack.entries(), entriesOf(one.entries));
  assert.equal(toHex(encodePack(pack.info, entriesOf(one.entries).reverse())), one.pack);
  assert.equal(toHex(await sha256(pack.content)), one.sha256);
  await openPack(fromHex(one.pack), { artifact: one.sha256 });
  await refused(errors.MessageError, "artifact", () => openPack(fromHex(one.pack), { artifact: "0".repeat(64) }));
});
replay("bad_pack", (one) => refused(errors.MessageError, one.says, async () => decodePack(fromHex(one.pack))));
replay("pack_delta", async (one) =>
  assert.equal(toHex(await applyDelta(fromHex(one.base), fromHex(one.delta))), one.result),
);
replay("bad_pack_delta", (one) =>
  refused(errors.MessageError, one.says, () => applyDelta(fromHex(one.base), fromHex(one.delta))),
);
replay("signed_pack", async (one) => {
  assert.equal(toHex(await verifySignedPack(fromHex(one.message), pinnedOf(one))), one.pack);
});
replay("bad_signed_pack", (one) =>
  refused(errors.MessageError, one.says, () => verifySignedPack(fromHex(one.message), pinnedOf(one))),
);
replay("enrolment", async (one) => assert.deepEqual(readEnrolment(one.text), one.document));
replay("bad_enrolment", (one) => refused(errors.InvalidParameter, one.says, async () => readEnrolment(one.text)));
replay("hpke", async (one) => {
  const [info, plaintext] = [fromHex(one.info), fromHex(one.plaintext)];
  const ephemeral = async () => ladderKeyPair(fromHex(one.ephemeral));
  const sends = await hpke.sender(fromHex(one.public_key), info, ephemeral);
  assert.equal(toHex(sends.enc), one.enc);
  const opens = await hpke.receiver(await platformKeyPairOf(fromHex(one.private_key)), sends.enc, info);
  for (const [aad, sealed] of one.sealed) {
    assert.equal(toHex(await sends.seal(plaintext, fromHex(aad))), sealed);
    assert.deepEqual(await opens.open(fromHex(sealed), fromHex(aad)), plaintext);
  }
  for (const [name, length, exported] of one.exported) {
    assert.equal(toHex(await sends.export(fromHex(name), length)), exported);
    assert.equal(toHex(await opens.export(fromHex(name), length)), exported);
  }
});
replay("binary_http", async (one) => {
  const [decode, encode] = one.request ? [decodeRequest, encodeRequest] : [decodeResponse, encodeResponse];
  const document = one.request ?? one.response;
  const message = { ...document, content: fromHex(document.content) };
  const read = decode(fromHex(one.message));
  assert.deepEqual({ ...read, content: toHex(read.content) }, document);
  assert.equal(toHex(encode(message)) === one.message, one.is_written);
});
replay("bad_binary_http", (one) =>
  refused(errors.MessageError, one.says, async () =>
    (one.kind === "request" ? decodeRequest : decodeResponse)(fromHex(one.message)),
  ),
);
replay("ohttp", async (one) => {
  const [configuration] = await decodeConfigurations(fromHex(one.configurations));
  assert.equal(configuration.keyId, one.key_id);
  assert.equal(configuration.digest, one.digest);
  const ephemeral = async () => ladderKeyPair(fromHex(one.ephemeral));
  const sealed = await sealRequest(configuration, fromHex(one.request), ephemeral);
  assert.equal(toHex(sealed.message), one.sealed_request);
  assert.equal(toHex(await sealed.open(fromHex(one.sealed_response))), one.response);
});
replay("bad_ohttp", (one) =>
  refused(errors.MessageError, one.says, async () => {
    const [configuration] = await decodeConfigurations(fromHex(one.configurations));
    const ephemeral = async () => ladderKeyPair(fromHex(one.ephemeral));
    const sealed = await sealRequest(configuration, fromHex(one.request), ephemeral);
    await sealed.open(fromHex(one.answer));
  }),
);
const { packs } = readVectors("pack_search");
replay("pack_search", async (one) => {
  const index = await openPack(fromHex(packs[one.pack]));
  const found = index.find(one.typed, one.limit).map(({ entry, kind, distance }) => ({
    query: entry.query,
    kind,
    distance,
    lower: entry.lower,
    probability: entry.probability,
    urls: entry.urls.map(({ url, lower, probability }) => [url, lower, probability]),
  }));
  assert.deepEqual(found, one.found);
});

test("every file of vectors is replayed, or is the collector's alone", () => {
  assert.deepEqual([...replayed, ...COLLECTOR].sort(), vectorFiles().sort());
});
