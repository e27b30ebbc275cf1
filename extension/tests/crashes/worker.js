/** A device in a worker that can be ended at any moment: at a named point it says so and stands still. */

import { runDevice } from "./run_device.js";

const STILL = new Int32Array(new SharedArrayBuffer(4));

onmessage = async ({ data }) => {
  const onPoint = (name) => {
    if (name === "started" || name === data.stopAt) postMessage({ point: name });
    // until it is ended, which the browser does only seconds later; in a transaction no promise would hold it open
    if (name === data.stopAt) Atomics.wait(STILL, 0, 0);
  };
  postMessage({ result: await runDevice(data, onPoint) });
};
