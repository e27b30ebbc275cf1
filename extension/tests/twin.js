/**
 * The core as a process: a question on each line of the input, its answer on the same line of the output. The Python
 * tests compare (tests/javascript). SEARCHBLEND_CORE exchanges the folder of the core.
 */

import { createInterface } from "node:readline";
import { twinOf } from "./twin_answers.js";
import { core } from "./vectors.js";

const answer = await twinOf(core);
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
}
