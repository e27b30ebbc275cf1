/**
 * Local-search packs on this device: fetched whole or as a delta, checked, exchanged in one transaction.
 *
 * The pack before the present one is kept: should the present one not open, lookups go on with the last good one.
 */

import * as core from "../core/index.js";
import { Unreachable } from "./transport.js";

/** @import { Manifest, OfferedPack, SearchIndex } from "../core/index.js" */
/** @import { Device } from "./device.js" */
/** @import { Service, Storage, StoredPack } from "./types.d.ts" */

/** A string without a scheme is a host: nothing in it may be a user's name, a path or another scheme. */
const HOST = /^[a-z0-9.:-]+$/iu;

/** Fetch the pack that the manifest names, unless it is here; true if there is a new one.
 * @param {Device} device @param {Service} task @param {Manifest} manifest */
export async function updatePack(device, task, manifest) {
  const wanted = manifest.pack;
  if (!wanted) return false;
  const have = await device.storage.read((transaction) => transaction.get("packs", [task.task, "current"]));
  if (have?.artifact === wanted.artifact || (have && wanted.round < have.round)) return false;
  const content =
    (await fromDelta(device, task, have, wanted)) ?? (await device.transport.artifact(task, wanted.artifact, "pack"));
  if (content.length !== wanted.bytes) {
    throw new core.errors.MessageError("pack: not of the size that the manifest names");
  }
  const { meta } = await core.openPack(content, { artifact: wanted.artifact });
  if (meta.task !== task.task || meta.round !== wanted.round) {
    throw new core.errors.MessageError("pack: of another task or round");
  }
  await device.point("pack-read");
  await device.storage.write(async (transaction) => {
    const present = await transaction.get("packs", [task.task, "current"]);
    if (present) await transaction.put("packs", [task.task, "previous"], present);
    const pack = { content, artifact: wanted.artifact, round: wanted.round, at: device.now() };
    await transaction.put("packs", [task.task, "current"], pack);
  });
  return true;
}

/** The new pack made from the present one and a delta, or null if that does not work: then the whole file is
 * fetched.
 * @param {Device} device @param {Service} task @param {StoredPack | undefined} have @param {OfferedPack} wanted */
async function fromDelta(device, task, have, wanted) {
  const delta = have && wanted.deltas?.find((one) => one.base === have.artifact);
  if (!delta) return null;
  try {
    const difference = await device.transport.artifact(task, delta.artifact, "pack");
    return await core.applyPackDelta(have.content, difference, { artifact: delta.artifact, result: wanted.artifact });
  } catch (error) {
    if (error instanceof core.errors.SearchblendError || error instanceof Unreachable) return null;
    throw error;
  }
}

/** Indexes that were opened in this page or worker, by artifact: typing the next letter does not open a pack again.
 * @type {Map<string, SearchIndex>} */
const opened = new Map();

/** The indexes of all packs on this device, the last good one of each task. Needs no network.
 * @param {Storage} storage */
export async function openPacks(storage) {
  const entries = await storage.read((transaction) => transaction.all("packs"));
  const packs = new Map(entries.map(([key, pack]) => [key.join(" "), pack]));
  const tasks = new Set([...packs.keys()].map((name) => name.split(" ")[0]));
  for (const artifact of opened.keys()) {
    if (![...packs.values()].some((pack) => pack.artifact === artifact)) opened.delete(artifact);
  }
  const indexes = [];
  for (const task of tasks) {
    const index = (await openOne(packs.get(`${task} current`))) ?? (await openOne(packs.get(`${task} previous`)));
    if (index !== null) indexes.push(index);
  }
  return indexes;
}

/** The index, or null for what is absent or damaged. @param {StoredPack | undefined} pack */
async function openOne(pack) {
  if (!pack) return null;
  try {
    const { artifact, content } = pack;
    const index = opened.get(artifact) ?? (await core.openPack(content, { artifact, checked: true }));
    opened.set(artifact, index);
    return index;
  } catch (error) {
    if (error instanceof core.errors.SearchblendError) return null;
    throw error;
  }
}

/** The best answers of several packs to what was typed so far.
 * @param {SearchIndex[]} indexes @param {string} typed @param {number} [limit] */
export function searchPacks(indexes, typed, limit = 8) {
  const answers = indexes.flatMap((index) => index.search(typed, { limit }));
  const order = { exact: 0, prefix: 1, typo: 2 };
  // One pack's answers keep their order; those of several are merged.
  if (indexes.length > 1) answers.sort((a, b) => order[a.how] - order[b.how] || b.low - a.low);
  const listed = new Set();
  const distinct = answers.filter((answer) => {
    const key = JSON.stringify([answer.query, answer.url]);
    return !listed.has(key) && listed.add(key);
  });
  return distinct.slice(0, limit);
}

/** Where an answer leads, by the protocol's rule for links; null for what is only to be read.
 * @param {string | null} url */
export function addressOf(url) {
  const link = url === null ? null : linkOf(url);
  return link !== null && URL.canParse(link) ? new URL(link).href : null;
}

/** @param {string} url */
function linkOf(url) {
  if (/^https?:\/\//u.test(url)) return url;
  return HOST.test(url) ? `https://${url}` : null;
}
