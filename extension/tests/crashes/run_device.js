/** One look of a device at its task, the way the background does it. */

import { Device } from "../../src/device/device.js";
import { IndexedStorage } from "../../src/device/storage.js";

/** Enrol, agree and search as asked, then check; `onPoint` gets the name of each step. */
export async function runDevice({ database, enrolment, now, mode, forgetful, count }, onPoint = () => undefined) {
  const storage = await IndexedStorage.open(database);
  const device = new Device({
    storage: forgetful ? new ForgetfulStorage(storage) : storage,
    fetch: (url, options) => fetch(url, options),
    clock: () => now,
    lock: (name, work) => navigator.locks.request(name, work),
    version: "0.1.0",
    onPoint,
  });
  if (enrolment) await device.enrol(enrolment);
  if ((await device.settings()).mode !== mode) await device.setMode(mode);
  for (let i = 0; i < count; i += 1) {
    await device.observe({ query: `weather ${i}`, url: "https://weather.example/a", engine: "google" });
  }
  await onPoint("started");
  const [status] = await device.check({ sendNow: true });
  const { lifetime } = (await device.overview()).spent;
  const ledger = await storage.read((transaction) => transaction.all("ledger"));
  storage.close();
  return { status: status.code, spent: lifetime.epsilon, rounds: ledger.map(([key]) => key[1]) };
}

/** A planted fault: reports are kept, the debit is not. */
class ForgetfulStorage {
  constructor(storage) {
    this.storage = storage;
  }

  read(work) {
    return this.storage.read(work);
  }

  write(work) {
    return this.storage.write(work);
  }

  writeDurably(work) {
    return this.storage.writeDurably((transaction) =>
      work({
        get: (...of) => transaction.get(...of),
        put: (store, ...of) => (store === "ledger" ? Promise.resolve() : transaction.put(store, ...of)),
        remove: (...of) => transaction.remove(...of),
        clear: (...of) => transaction.clear(...of),
        all: (...of) => transaction.all(...of),
      }),
    );
  }
}
