"""The devices' programs as they are shipped: the JavaScript core through Node, and the Python agent, each in a process.

Each makes reports for two people, in bytes as they would be sent. They are decoded, compared with the channel computed
here anew, and attacked like any other local report.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, Final

from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS, ReportDesign
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList, Record
from searchblend.wire.head_list import encode_head_list
from searchblend.wire.report import ReportShape, decode_report
from searchblend_lab.evidence.bounds import fit
from searchblend_lab.evidence.evidence import ONE_CLIENT, Absent, Claim, Effort, Finding, judged
from searchblend_lab.evidence.laws.sampled_reports import set_law
from searchblend_lab.evidence.sampled import attack
from searchblend_lab.evidence.source_tree import PRODUCT

CORE: Final = PRODUCT.parents[1] / "extension" / "src" / "core"
_TASK: Final = "0123456789abcdef0123456789abcdef"
_ROUND: Final = 7
_SECONDS: Final = 600
_BUDGET: Final = Budget(3.0, 1e-5)
_HEAD: Final = HeadList({"a": ["1", "2"], "b": ["1"], "c": []})
_QUERIES: Final = HeadList((f"q{i}", []) for i in range(5))

IN_NODE: Final = """
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const { core, message, digest, records, n, task, round } = JSON.parse(readFileSync(0, "utf8"));
const { makeReport, readHeadList } = await import(pathToFileURL(core + "/index.js").href);
const content = new TextEncoder().encode(message);
const artifact = createHash("sha256").update(content).digest("hex");
const list = await readHeadList(content, { artifact, digest });
for (const record of records) {
  const made = [];
  for (let i = 0; i < n; i += 1) made.push(Buffer.from(await makeReport([record], list, task, round)));
  console.log(Buffer.concat(made).toString("base64"));
}
"""
IN_PYTHON: Final = """
import base64, json, sys
from searchblend.device.make_report import make_report
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import WILDCARD, Record
from searchblend.wire.head_list import decode_head_list
from searchblend.wire.report import ReportShape
asked = json.load(sys.stdin)
message = decode_head_list(json.loads(asked["message"]))
shape = ReportShape.of(bytes.fromhex(asked["task"]), asked["round"], message.head, message.params, message.design)
for record in asked["records"]:
    held = [Record(record["query"], WILDCARD if record["url"] is None else record["url"])]
    made = [make_report(held, message, shape, SystemRandomness()).content for _ in range(asked["n"])]
    print(base64.b64encode(b"".join(made)).decode())
"""


def javascript(effort: Effort) -> list[Finding]:
    """The core that browsers run, in Node."""
    node = shutil.which("node")
    if node is None:
        raise Absent("the JavaScript core: there is no Node.js here")
    return audit_core(CORE, node, effort)


def audit_core(core: Path, node: str, effort: Effort) -> list[Finding]:
    if not (core / "index.js").is_file():
        raise Absent("the JavaScript core: it is not beside this installation (extension/src/core)")
    command = [node, "--input-type=module", "-e", IN_NODE]
    return [*_all_reports("JavaScript core", command, core, effort), _no_weak_generator(core)]


def device(effort: Effort) -> list[Finding]:
    """The Python agent's own report maker, in a process."""
    if not (PRODUCT / "device" / "make_report.py").is_file():
        raise Absent("the device agent: there is no folder device")
    return _all_reports("Python device", [sys.executable, "-c", IN_PYTHON], CORE, effort)


def _all_reports(name: str, command: Sequence[str], core: Path, effort: Effort) -> list[Finding]:
    no_urls = BlenderParams(_BUDGET).for_log(has_urls=False)
    pair = [Record("q1"), Record("q3")]
    findings = _reports(f"{name}, paper", command, core, _HEAD, BlenderParams(_BUDGET), None, [_A, _B], effort)
    for kind in (SINK_SETS, PLAIN_SETS):
        design = ReportDesign(20, 2, 1, kind)
        findings += _reports(f"{name}, {kind}", command, core, _QUERIES, no_urls, design, pair, effort)
    return findings


_A: Final = Record("a", "1")
_B: Final = Record("b", "1")


def _reports(
    subject: str,
    command: Sequence[str],
    core: Path,
    head: HeadList,
    params: BlenderParams,
    design: ReportDesign | None,
    pair: Sequence[Record],
    effort: Effort,
) -> list[Finding]:
    n = max(effort.draws // 20, 2000)
    ask = _asker(command, core, head, params, design)
    claim = Claim(_BUDGET.epsilon, 0.0 if design else _BUDGET.delta, ONE_CLIENT)
    samplers = [lambda n, record=record: ask(record, n) for record in pair]
    seen: list[Counter[Hashable]] = []

    def kept(sampler: Callable[[int], Counter[Hashable]]) -> Callable[[int], Counter[Hashable]]:
        def sample(n: int) -> Counter[Hashable]:
            seen.append(sampler(n))
            return seen[-1]

        return sample

    attacked = attack(subject, claim, [kept(sampler) for sampler in samplers], n, effort.level, "bytes as sent")
    p = min(1.0, 2 * min(fit(seen[side], _law(head, params, design, pair[side])) for side in (0, 1)))
    fitted = Finding(
        f"{subject}: law", judged(holds=p > effort.level), f"p = {p:.2g} against the printed law", trials=2 * n
    )
    return [attacked, fitted]


def _law(head: HeadList, params: BlenderParams, design: ReportDesign | None, record: Record) -> dict[Any, float]:
    if design is None:
        return {(cell,): p for cell, p in _figure_6_row(head, head.cell_of(record), params).items()}
    item = head.queries.index(str(record.query))
    return dict(
        set_law(len(head), design.query_subset, item, params.budget.epsilon, sink=design.mechanism == SINK_SETS)
    )


def _asker(
    command: Sequence[str], core: Path, head: HeadList, params: BlenderParams, design: ReportDesign | None
) -> Callable[[Record, int], Counter[Hashable]]:
    message = json.dumps(encode_head_list(head, params, design), ensure_ascii=False)
    shape = ReportShape.of(bytes.fromhex(_TASK), _ROUND, head, params, design)

    def ask(record: Record, n: int) -> Counter[Hashable]:
        asked = {
            "core": str(core),
            "message": message,
            "digest": head.digest,
            "records": [{"query": record.query, "url": record.url if isinstance(record.url, str) else None}],
            "n": n,
            "task": _TASK,
            "round": _ROUND,
        }
        content = base64.b64decode(_run(command, json.dumps(asked)))
        reports = [content[start : start + shape.size] for start in range(0, len(content), shape.size)]
        return Counter(decode_report(report, shape)[1][0].items for report in reports)

    return ask


def _run(command: Sequence[str], asked: str) -> str:
    done = subprocess.run(  # noqa: S603  # our own programs
        list(command), input=asked, capture_output=True, text=True, timeout=_SECONDS, check=False, env=dict(os.environ)
    )
    if done.returncode:
        raise AssertionError(f"the program ends with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def _no_weak_generator(core: Path) -> Finding:
    """``Math.random`` is predictable; the core must not name it."""
    files = sorted(core.glob("*.js"))
    weak = [path.name for path in files if "Math.random" in path.read_text(encoding="utf-8")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
    detail = f"{len(files)} modules ({digest}) do not name Math.random" if not weak else f"in {', '.join(weak)}"
    return Finding("JavaScript core: source of randomness", judged(holds=not weak), detail)


def _figure_6_row(head: HeadList, cell: int, params: BlenderParams) -> dict[int, float]:
    """P(report | cell) as printed in [BLJ] Fig. 6, in doubles."""
    query = head.query_of_cells()[cell]
    fraction, m = params.query_budget_fraction, params.records_per_client
    epsilon, delta = params.budget.epsilon / m, params.budget.delta / m
    t = _keep(fraction * epsilon, fraction * delta, head.n_queries)
    t_q = _keep((1 - fraction) * epsilon, (1 - fraction) * delta, head.n_urls[query])
    row: dict[int, float] = {}
    for other, (first, width) in enumerate(zip(head.first_cells(), head.n_urls, strict=True)):
        for position in range(width):
            if other != query:
                row[first + position] = (1 - t) / (head.n_queries - 1) / width
            elif first + position == cell:
                row[first + position] = t * t_q
            else:
                row[first + position] = t * (1 - t_q) / (width - 1)
    return row


def _keep(epsilon: float, delta: float, k: int) -> float:
    return 1.0 if k == 1 else (math.exp(epsilon) + delta / 2 * (k - 1)) / (math.exp(epsilon) + k - 1)
