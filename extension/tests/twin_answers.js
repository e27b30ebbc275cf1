/**
 * The core as a twin of the Python package: a question, which is a JSON document, gives an answer. What the core
 * refuses is answered {"refused": name of the error, "reason"?}. It runs in Node (twin.js) and in browsers (twin.html).
 */

import { Tape } from "./tape.js";

/** The function that answers; `core(name)` imports a module of the core. */
export async function twinOf(core) {
  const { admit } = await core("admission");
  const { fromHex, sha256, textOf, toHex, utf8 } = await core("bytes");
  const { canonicalJson, parseCanonical } = await core("canonical");
  const { SearchblendError } = await core("errors");
  const { oddsFigures, taskConsent } = await core("consent");
  const { expBounds } = await core("fixed_point");
  const { Fraction } = await core("fraction");
  const { decodeHeadList } = await core("head_list");
  const { localReport, randomize } = await core("local_report");
  const { decodePayload } = await core("manifest");
  const { normalize, normalizeUrl } = await core("normalize");
  const { decodePack, encodePack } = await core("pack");
  const { applyDelta } = await core("pack_delta");
  const { ReportParams } = await core("params");
  const policy = await core("policy");
  const { acceptBelow, systemRandomness, uniformBelow } = await core("randomness");
  const { HeadList } = await core("records");
  const { cellsAsParts, decodeReport, encodeReport, ReportShape } = await core("report");
  const { listOdds, reportOdds } = await core("report_odds");
  const { ReportProbabilities } = await core("report_probabilities");
  const { contributorTag, openRecords, sealRecords } = await core("sealed");
  const { pinnedKeys, verifyManifest } = await core("signing");
  const { openPack } = await core("search");
  const { ReportDesign, subsetReport } = await core("subset_report");
  const { PlainSubsetSelection, SubsetSelection, uniformSubset } = await core("subset_selection");
  const { suspicions } = await core("suspects");
  const { allAssigned, unassignedRanges } = await core("unicode14");
  const { visible } = await core("visible");
  const { ladderKeyPair, platformKeyPair } = await core("x25519");

  const paramsOf = ([epsilon, delta, queryBudgetFraction, recordsPerClient]) =>
    new ReportParams({ epsilon, delta, queryBudgetFraction, recordsPerClient });
  const designOf = (design) =>
    design &&
    new ReportDesign({ querySteps: design[0], querySubset: design[1], cellSubset: design[2], mechanism: design[3] });
  const recordsOf = (pairs) => pairs.map(([query, url]) => ({ query, url }));
  const pairsOf = (parts) => parts.map(({ aboutQueries, items }) => [aboutQueries, items]);
  const sourceOf = (tape) => (tape === undefined ? systemRandomness : new Tape(fromHex(tape)));
  const contextOf = ({ task, round, consent }) => ({ task: fromHex(task), round, consent: fromHex(consent) });
  const tagOf = (context) => contributorTag(contextOf(context), context.credential);
  const fractionOf = ([numerator, denominator]) => new Fraction(BigInt(numerator), BigInt(denominator));

  /** All parts of one device's report. */
  function partsOf(records, head, design, params, source) {
    return design
      ? subsetReport(records, head, design, params, source)
      : cellsAsParts(localReport(records, head, params, source));
  }

  function shapeOf(shape) {
    const { task, digest, query_items, query_subset, cell_items, cell_subset, ...same } = shape;
    const items = {
      queryItems: query_items,
      querySubset: query_subset,
      cellItems: cell_items,
      cellSubset: cell_subset,
    };
    return new ReportShape({ ...same, ...items, task: fromHex(task), digest: fromHex(digest) });
  }

  function mechanismOf({ kind, epsilon, n_items, subset_size }) {
    return (kind === "plain" ? PlainSubsetSelection : SubsetSelection).of(fractionOf(epsilon), n_items, subset_size);
  }

  const entryOf = ([query, lower, probability, urls]) => ({
    query,
    lower,
    probability,
    urls: urls.map(([url, low, share]) => ({ url, lower: low, probability: share })),
  });
  const rowOf = ({ query, lower, probability, urls }) => [
    query,
    lower,
    probability,
    urls.map((url) => [url.url, url.lower, url.probability]),
  ];

  const onTapes = (tapes, draw) =>
    tapes.map((content) => {
      const tape = new Tape(fromHex(content));
      return [draw(tape), tape.left];
    });

  /** How often each outcome came, by its JSON. */
  function counted(n, draw) {
    const counts = {};
    for (let i = 0; i < n; i++) {
      const outcome = JSON.stringify(draw());
      counts[outcome] = (counts[outcome] ?? 0) + 1;
    }
    return counts;
  }

  const answers = {
    normalize: ({ text }) => normalize(text),
    normalize_url: ({ text, host_only }) => normalizeUrl(text, { hostOnly: host_only }),
    async every_code_point() {
      const forms = [];
      for (let point = 0; point < 0x110000; point++) {
        const form = normalize(String.fromCodePoint(point));
        if (form !== null) forms.push(`${point}:${form}`);
      }
      return toHex(await sha256(utf8(forms.join("\n"))));
    },
    unassigned: () => unassignedRanges(),
    all_assigned: ({ text }) => allAssigned(text),
    exp_bounds: ({ x }) => expBounds(fractionOf(x)).map(String),
    accept_below: ({ n }) => acceptBelow(n),
    suspicions: ({ text }) => suspicions(text),
    visible: ({ points }) => visible(String.fromCodePoint(...points)),
    admit: ({ query, url }) => admit(query, url),
    policy: () => policy.POLICY,
    reasons: () => policy.REASONS,
    check_manifest: ({ manifest, memory }) => policy.checkManifest(manifest, memory) ?? null,
    check_request: ({ manifest }) => policy.checkRequest(manifest) ?? null,
    check_head_list: async ({ document, manifest, curators }) =>
      (await policy.checkHeadList(await decodeHeadList(document), manifest, await pinnedKeys(curators))) ?? null,
    canonical: ({ document }) => textOf(canonicalJson(document)),
    parse_canonical: ({ content }) => parseCanonical(fromHex(content), "it"),
    decode_payload: ({ payload }) => decodePayload(fromHex(payload)),
    verify_manifest: ({ message, pinned }) =>
      verifyManifest(
        fromHex(message),
        Object.fromEntries(Object.entries(pinned).map(([id, point]) => [id, fromHex(point)])),
      ),
    async decode_head_list({ document }) {
      const { head, params, design } = await decodeHeadList(document);
      const { epsilon, delta, queryBudgetFraction, recordsPerClient } = params;
      return [head.asJson(), [epsilon, delta, queryBudgetFraction, recordsPerClient], design && { ...design }];
    },
    thresholds({ queries, params, exact }) {
      const found = ReportProbabilities[exact ? "exact" : "of"](new HeadList(queries), paramsOf(params));
      return [found.keepQueryBelow, ...found.keepRecordBelow].map(String);
    },
    subset_thresholds(one) {
      const { includeBelow, sinkBelow } = mechanismOf(one);
      return [includeBelow, sinkBelow].filter((below) => below !== undefined).map(String);
    },
    odds({ queries, params: p, design: d }) {
      const params = paramsOf(p);
      return [reportOdds(new HeadList(queries), params, designOf(d)), listOdds(params, queries.length + 1)].map(
        ({ named, growth, ...odds }) => {
          const { answers, mostItems, times, most } = oddsFigures({ named, growth, ...odds });
          return [named, growth === Infinity ? null : growth, answers, mostItems, times, most];
        },
      );
    },
    consent: ({ records, own }) => {
      const text = taskConsent(records, own);
      return [text, taskConsent(records, text) === text];
    },
    async report({ task, round, queries, params: p, design: d, records, tape }) {
      const [head, params, design, source] = [new HeadList(queries), paramsOf(p), designOf(d), sourceOf(tape)];
      const shape = await ReportShape.of(fromHex(task), round, head, params, design);
      const parts = partsOf(recordsOf(records), head, design, params, source);
      return [pairsOf(parts), toHex(await encodeReport(parts, shape, source)), source.left];
    },
    decode_report: async ({ message, shape }) => pairsOf((await decodeReport(fromHex(message), shapeOf(shape))).parts),
    seal: async ({ records, context, public_key, ladder }) => {
      const ephemeral = ladder
        ? async () => ladderKeyPair(crypto.getRandomValues(new Uint8Array(32)))
        : platformKeyPair;
      return toHex(
        await sealRecords(recordsOf(records), contextOf(context), await tagOf(context), fromHex(public_key), ephemeral),
      );
    },
    open: async ({ message, context, private_key, at_most }) => {
      const pair = ladderKeyPair(fromHex(private_key));
      const records = await openRecords(fromHex(message), contextOf(context), await tagOf(context), pair, at_most);
      return records.map(({ query, url }) => [query, url]);
    },
    decode_pack: ({ pack }) => decodePack(fromHex(pack)).entries().map(rowOf),
    encode_pack: ({ info, entries }) => toHex(encodePack(info, entries.map(entryOf))),
    apply_delta: async ({ base, delta }) => toHex(await applyDelta(fromHex(base), fromHex(delta))),
    search: async ({ pack, typed, limit }) =>
      (await openPack(fromHex(pack)))
        .find(typed, limit)
        .map(({ entry, kind, distance }) => [rowOf(entry), kind, distance]),

    // --- single steps on tapes (each outcome with the bytes left), and many draws of the platform's randomness ---
    randomize: ({ query, url, below, n_urls, tapes }) => {
      const [keepQuery, ...keepRecord] = below.map(BigInt);
      const probabilities = new ReportProbabilities(keepQuery, keepRecord, n_urls);
      return onTapes(tapes, (tape) => randomize(query, url, probabilities, tape));
    },
    subset: ({ mechanism, item, tapes }) => {
      const made = mechanismOf(mechanism);
      return onTapes(tapes, (tape) => made.report(item, tape));
    },
    uniform: ({ below, tapes }) => onTapes(tapes, (tape) => uniformBelow(below, tape)),
    parts: ({ queries, params: p, design: d, records, tapes }) => {
      const [head, params, design] = [new HeadList(queries), paramsOf(p), designOf(d)];
      return onTapes(tapes, (tape) => pairsOf(partsOf(recordsOf(records), head, design, params, tape)));
    },
    draw_reports: ({ queries, params: p, design: d, records, n }) => {
      const [head, params, design, held] = [new HeadList(queries), paramsOf(p), designOf(d), recordsOf(records)];
      return counted(n, () => pairsOf(partsOf(held, head, design, params, systemRandomness)));
    },
    draw_uniform: ({ below, n }) => counted(n, () => uniformBelow(below, systemRandomness)),
    draw_subsets: ({ size, of, n }) => counted(n, () => uniformSubset(of, size, systemRandomness)),
  };

  return async function answer(one) {
    try {
      return { answer: await answers[one.do](one) };
    } catch (error) {
      if (error instanceof SearchblendError) return { refused: error.name, reason: error.reason, says: error.message };
      return { crashed: `${error.stack}` };
    }
  };
}
