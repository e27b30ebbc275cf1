/**
 * The device's state in IndexedDB: a few stores, and transactions over all of them.
 *
 * A debit and the report it pays for are written in one transaction, so that there is never one without the other, and
 * with strict durability: what was committed is on the disk before anything is sent.
 */

/** @import { Entry, Key, Storage, StoreName, Transaction, Value, Work } from "./types.d.ts" */

/** @type {readonly StoreName[]} */
export const STORES = Object.freeze(["settings", "tasks", "records", "ledger", "reports", "packs"]);
const VERSION = 1;

/** The disk or the browser's quota is full; nothing of the transaction was kept. */
export class StorageFull extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = "StorageFull";
  }
}

/** One transaction. Its work may await these operations and nothing else: anything else would end the transaction.
 * @implements {Transaction} */
class IndexedTransaction {
  #transaction;

  /** @param {IDBTransaction} transaction */
  constructor(transaction) {
    this.#transaction = transaction;
  }

  /** @template {StoreName} S @template {Key<S>} K @param {S} store @param {K} key
   * @returns {Promise<Value<S, K> | undefined>} */
  get(store, key) {
    return answered(this.#transaction.objectStore(store).get(key));
  }

  /** @template {StoreName} S @template {Key<S>} K @param {S} store @param {K} key @param {Value<S, K>} value */
  put(store, key, value) {
    return answered(this.#transaction.objectStore(store).put(value, key));
  }

  /** @template {StoreName} S @param {S} store @param {Key<S>} key */
  remove(store, key) {
    return answered(this.#transaction.objectStore(store).delete(key));
  }

  /** @param {StoreName} store */
  clear(store) {
    return answered(this.#transaction.objectStore(store).clear());
  }

  /** All entries as [key, value], in the order of their keys.
   * @template {StoreName} S @param {S} store @returns {Promise<Entry<S>[]>} */
  async all(store) {
    const entries = this.#transaction.objectStore(store);
    const [keys, values] = await Promise.all([answered(entries.getAllKeys()), answered(entries.getAll())]);
    return keys.map((key, i) => /** @type {Entry<S>} */ ([key, values[i]]));
  }
}

/** @implements {Storage} */
export class IndexedStorage {
  #name;
  /** @type {IDBDatabase | null} */
  #database = null;

  /** @param {string} name */
  constructor(name) {
    this.#name = name;
  }

  static async open(name = "searchblend") {
    const storage = new IndexedStorage(name);
    await storage.#connect();
    return storage;
  }

  /** The browser may close a connection (a newer version elsewhere, a damaged disk); the next use opens it anew. */
  async #connect() {
    if (this.#database !== null) return this.#database;
    const request = indexedDB.open(this.#name, VERSION);
    request.onupgradeneeded = () => {
      for (const store of STORES) request.result.createObjectStore(store);
    };
    const database = await answered(request);
    database.onversionchange = () => this.close();
    database.onclose = () => {
      this.#database = null;
    };
    this.#database = database;
    return database;
  }

  /** @template R @param {Work<R>} work */
  async read(work) {
    return this.#run("readonly", {}, work);
  }

  /** What `work` returns, after everything it wrote was committed; if it throws, nothing is written.
   * @template R @param {Work<R>} work */
  async write(work) {
    return this.#run("readwrite", { durability: "relaxed" }, work);
  }

  /** The same, and it is on the disk: a loss of power does not undo it. @template R @param {Work<R>} work */
  async writeDurably(work) {
    return this.#run("readwrite", { durability: "strict" }, work);
  }

  /** @template R @param {IDBTransactionMode} mode @param {IDBTransactionOptions} options @param {Work<R>} work */
  async #run(mode, options, work) {
    const transaction = (await this.#connect()).transaction(STORES, mode, options);
    /** @type {Promise<void>} */
    const ended = new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(asStorageError(transaction.error));
    });
    ended.catch(() => undefined); // who waits for it is below; an abort before that is not an unhandled rejection
    let result;
    try {
      result = await work(new IndexedTransaction(transaction));
    } catch (error) {
      try {
        transaction.abort();
      } catch {
        // it had ended already
      }
      throw asStorageError(error);
    }
    await ended;
    return result;
  }

  close() {
    this.#database?.close();
    this.#database = null;
  }
}

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
function answered(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(asStorageError(request.error));
  });
}

/** @param {unknown} error */
function asStorageError(error) {
  return error instanceof Error && error.name === "QuotaExceededError"
    ? new StorageFull("the browser's storage is full")
    : (error ?? new Error("a transaction was ended"));
}
