/** The device of this browser: IndexedDB, the network, the clock and Web Locks of the platform. */

import { Device } from "../device/device.js";
import { IndexedStorage } from "../device/storage.js";

/** @type {Promise<Device> | null} */
let device = null;

/** One per page or worker; all of them share the storage, and the lock keeps them from acting at once. */
export function theDevice() {
  device ??= makeDevice();
  return device;
}

async function makeDevice() {
  return new Device({
    storage: await IndexedStorage.open(),
    fetch: (url, options) => fetch(url, options),
    clock: () => Date.now() / 1000,
    lock: async (name, work) => navigator.locks.request(name, work),
  });
}
