/** Ends devices at random moments and at named points, and looks at what the recording service got. */

import { runDevice } from "./run_device.js";

const POINTS = [
  "manifest-read",
  "list-read",
  "locked",
  "randomized",
  "half-written",
  "written",
  "debited",
  "sending",
  "answered",
  "noted",
];
const WEEKS = 8 * 86_400;
const EPSILON = 0.5;

/** `crashes` rounds, each with at least one crash; what went wrong, and where devices were ended. */
window.crashTest = async ({ crashes, seed, enrolment, start, forgetful = false }) => {
  const random = generator(seed);
  const database = `crash-${seed}-${forgetful}`;
  const faults = [];
  const ended = {};
  let turn = 0; // points come in turn, one that was not reached again, so that few crashes reach all
  for (let round = 1; round <= crashes; round += 1) {
    const kind = random() < 0.75 ? "client" : "opt-in";
    const now = start + round * WEEKS;
    await post("/control", { round, kind, now, drop: random() < 0.2 });
    const message = {
      database,
      now,
      mode: kind === "client" ? "local" : "opt-in",
      count: 1,
      forgetful,
      enrolment: round === 1 ? enrolment : null,
    };
    const where = random() < 0.7 ? POINTS[turn % POINTS.length] : null;
    const isRace = random() < 0.3;
    const rival = isRace ? runDevice({ ...message, count: 1 }) : null;
    const at = await crash(message, where, random() * 60);
    ended[at] = (ended[at] ?? 0) + 1;
    if (at === where) turn += 1;
    check(faults, round, await rival, await recorded(round));
    await post("/control", { round, kind, now, drop: false });
    const last = await runDevice({ ...message, count: 1 });
    const got = await recorded(round);
    check(faults, round, last, got);
    if (got.length !== 1) {
      faults.push({ round, kind, where, problem: `${got.length} different reports`, status: last.status });
    }
    if (Math.abs(last.spent - EPSILON * last.rounds.length) > 1e-9) {
      faults.push({ round, problem: "the sum is not that of the entries" });
    }
  }
  return { faults, ended };
};

/** Whatever the service got was paid for, once. */
function check(faults, round, result, got) {
  if (!result) return;
  if (result.status === "internal") faults.push({ round, problem: "internal" });
  if (got.length > 1) faults.push({ round, problem: "two different reports" });
  if (got.length > 0 && !result.rounds.includes(round)) faults.push({ round, problem: "the ledger is short" });
}

/** A device that is ended at a named point, or after so many milliseconds, or comes to its end before. */
async function crash(message, stopAt, milliseconds) {
  const { worker, said, done } = run({ ...message, stopAt });
  const timer =
    stopAt === null
      ? said("started").then(() => new Promise((resolve) => setTimeout(() => resolve("random moment"), milliseconds)))
      : new Promise(() => undefined);
  const at = await Promise.race([said(stopAt), timer, done.then(() => "not reached")]);
  worker.terminate();
  return at;
}

let next = fresh();

function fresh() {
  return new Worker("/tests/crashes/worker.js", { type: "module" });
}

function run(message) {
  const worker = next;
  next = fresh(); // loads its modules meanwhile
  const points = new Map();
  const said = (point) => new Promise((resolve) => points.set(point, resolve));
  const done = new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => (data.point ? points.get(data.point)?.(data.point) : resolve(data.result));
    worker.onerror = (event) => reject(new Error(`worker: ${event.message}`));
  });
  worker.postMessage(message);
  return { worker, said, done };
}

async function post(path, document) {
  await fetch(path, { method: "POST", body: JSON.stringify(document) });
}

async function recorded(round) {
  return (await fetch(`/recorded?round=${round}`)).json();
}

/** Seeded, so that a fault can be seen again. */
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

document.body.dataset.ready = "yes";
