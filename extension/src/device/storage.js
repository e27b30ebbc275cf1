/**
 * The device's state in IndexedDB: a few stores, and transactions over all of them.
 *
 * A debit and the report it pays for are written in one transaction, so that there is never one without the other, and
 * with strict durability: what was committed is on the disk before anything is sent.
 */

export const STORES = Object.freeze(["settings", "tasks", "records", "ledger", "reports", "packs"]);
const VERSION = 1;

/** The disk or the browser's quota is full; nothing of the transaction was kept. */
export class StorageFull extends Error {
  constructor(message) {
    super(message);
    this.name = "StorageFull";
  }
}

/** One transaction. Its work may await these operations and nothing else: anything else would end the transaction. */
class Transaction {
  #transaction;

  constructor(transaction) {
    this.#transaction = transaction;
  }

  get(store, key) {
    return answered(this.#transaction.objectStore(store).get(key));
  }

  put(store, key, value) {
    return answered(this.#transaction.objectStore(store).put(value, key));
  }

  remove(store, key) {
    return answered(this.#transaction.objectStore(store).delete(key));
  }

  clear(store) {
    return answered(this.#transaction.objectStore(store).clear());
  }

  /** All entries as [key, value], in the order of their keys. */
  async all(store) {
    const found = this.#transaction.objectStore(store);
    const [keys, values] = await Promise.all([answered(found.getAllKeys()), answered(found.getAll())]);
    return keys.map((key, i) => [key, values[i]]);
  }
}

export class IndexedStorage {
  #name;
  #database = null;

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
    this.#database = await answered(request);
    this.#database.onversionchange = () => this.close();
    this.#database.onclose = () => {
      this.#database = null;
    };
    return this.#database;
  }

  async read(work) {
    return this.#run("readonly", {}, work);
  }

  /** What `work` returns, after everything it wrote was committed; if it throws, nothing is written. */
  async write(work) {
    return this.#run("readwrite", { durability: "relaxed" }, work);
  }

  /** The same, and it is on the disk: a loss of power does not undo it. */
  async writeDurably(work) {
    return this.#run("readwrite", { durability: "strict" }, work);
  }

  async #run(mode, options, work) {
    const transaction = (await this.#connect()).transaction(STORES, mode, options);
    const ended = new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(asStorageError(transaction.error));
    });
    ended.catch(() => undefined); // who waits for it is below; an abort before that is no unhandled rejection
    let result;
    try {
      result = await work(new Transaction(transaction));
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

function answered(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(asStorageError(request.error));
  });
}

function asStorageError(error) {
  return error?.name === "QuotaExceededError"
    ? new StorageFull("the browser's storage is full")
    : (error ?? new Error("a transaction was ended"));
}
