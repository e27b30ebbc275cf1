/**
 * The core as a process: on each line of the input the folder of a core and a list of questions, on the same line of
 * the output their answers. The Python tests compare (tests/javascript). A process answers for many cores, each loaded
 * anew, because starting Node takes longer than most answers; a folder that holds no core is said to be broken.
 */

import { createInterface } from "node:readline";
import { twinOf } from "./twin_answers.js";

const twins = new Map();

async function twinOfFolder(folder) {
  if (!twins.has(folder)) twins.set(folder, await twinOf((name) => import(new URL(`${name}.js`, folder))));
  return twins.get(folder);
}

async function answered({ core, questions }) {
  let answer;
  try {
    answer = await twinOfFolder(core);
  } catch (error) {
    return { broken: `${error.stack}` };
  }
  const answers = [];
  for (const question of questions) answers.push(await answer(question));
  return { answers };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await answered(JSON.parse(line)))}\n`);
}
