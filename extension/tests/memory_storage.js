/** The storage's interface in memory, for Node: a transaction works on a copy that becomes the state, or not. */

import { STORES, StorageFull } from "../src/device/storage.js";

export class MemoryStorage {
  #stores = new Map(STORES.map((store) => [store, new Map()]));
  #queue = Promise.resolve();
  isFull = false;

  read(work) {
    return this.#run(work, false);
  }

  write(work) {
    return this.#run(work, true);
  }

  writeDurably(work) {
    return this.write(work);
  }

  #run(work, mayWrite) {
    const result = this.#queue.then(async () => {
      const copy = new Map([...this.#stores].map(([store, entries]) => [store, new Map(entries)]));
      const outcome = await work(new MemoryTransaction(copy, mayWrite, this.isFull));
      if (mayWrite) this.#stores = copy;
      return outcome;
    });
    this.#queue = result.catch(() => undefined);
    return result;
  }
}

class MemoryTransaction {
  constructor(stores, mayWrite, isFull) {
    Object.assign(this, { stores, mayWrite, isFull });
  }

  async get(store, key) {
    return structuredClone(this.stores.get(store).get(JSON.stringify(key)));
  }

  async put(store, key, value) {
    if (!this.mayWrite) throw new Error("a transaction for reading");
    if (this.isFull) throw new StorageFull("the browser's storage is full");
    this.stores.get(store).set(JSON.stringify(key), structuredClone(value));
  }

  async remove(store, key) {
    this.stores.get(store).delete(JSON.stringify(key));
  }

  async clear(store) {
    this.stores.get(store).clear();
  }

  async all(store) {
    const entries = [...this.stores.get(store)].map(([key, value]) => [JSON.parse(key), structuredClone(value)]);
    return entries.sort(([a], [b]) => compare(a, b));
  }
}

/** As IndexedDB compares: arrays by their first difference. */
function compare(a, b) {
  const [left, right] = [[a].flat(), [b].flat()];
  for (let i = 0; i < Math.min(left.length, right.length); i += 1) {
    if (left[i] !== right[i]) return left[i] < right[i] ? -1 : 1;
  }
  return left.length - right.length;
}
