/** Times single reports of the JavaScript core: a job on each line of the input, its seconds on each line of the output. */

import { createInterface } from "node:readline";
import { HeadList } from "../extension/src/core/records.js";
import { localReport } from "../extension/src/core/local_report.js";
import { normalize } from "../extension/src/core/normalize.js";
import { ReportParams } from "../extension/src/core/params.js";
import { systemRandomness } from "../extension/src/core/randomness.js";
import { cellsAsParts, encodeReport, ReportShape } from "../extension/src/core/report.js";
import { ReportDesign, subsetReport } from "../extension/src/core/subset_report.js";

async function seconds({ queries, epsilon, delta, design: values, records, texts, encode }) {
  if (texts) {
    const start = performance.now();
    for (const text of texts) normalize(text);
    return (performance.now() - start) / 1000;
  }
  const [head, params] = [new HeadList(queries), new ReportParams({ epsilon, delta })];
  const design = values && new ReportDesign({ querySteps: values[0], querySubset: values[1], cellSubset: values[2], mechanism: values[3] });
  const shape = await ReportShape.of(new Uint8Array(16), 1, head, params, design);
  const held = records.map(([query, url]) => [{ query, url }]);
  const start = performance.now();
  for (const own of held) {
    const parts = design
      ? subsetReport(own, head, design, params, systemRandomness)
      : cellsAsParts(localReport(own, head, params, systemRandomness));
    if (encode) await encodeReport(parts, shape, systemRandomness);
  }
  return (performance.now() - start) / 1000;
}

for await (const line of createInterface({ input: process.stdin })) console.log(await seconds(JSON.parse(line)));
