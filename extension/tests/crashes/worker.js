/** A device in a worker that can be ended at any moment: at a named point it says so and stands still. */

import { runDevice } from "./run_device.js";

onmessage = async ({ data }) => {
  const onPoint = (name) => {
    if (name === "started" || name === data.stopAt) postMessage({ point: name });
    while (name === data.stopAt); // until it is ended; in a transaction nothing else would hold it open
  };
  postMessage({ result: await runDevice(data, onPoint) });
};
