"""Planted faults of the JavaScript core, by name: each is the shipped source with one thing wrong.

The first names are those of the Python suite (searchblend_lab.evidence.laws: faults, best_faults), as far as they are about what a device
does; the others are faults that only JavaScript can have. A change of the source that a patch no longer fits fails.
"""

# ruff: noqa: E501 (lines of another language)

from __future__ import annotations

import shutil
from pathlib import Path

from node_twin import CORE

Patch = tuple[str, str, str]
"""file, what stands there, what stands there instead (the first place)"""

_STAGES = "report_probabilities.js"
_LOCAL = "local_report.js"
_SETS = "subset_selection.js"
_DEVICE = "subset_report.js"
_WORDS = "randomness.js"
_KEEP_QUERY = "keepProbability(params.queryShare, head.nQueries)"
_KEEP_URL = "keepProbability(params.urlShare, width)"
_PRINTED = "  return new ReportProbabilities(keepQuery, keepRecord, head.nUrls);"
_NEW_SETS = "new SubsetSelection(nItems, subsetSize, include, include + sink)"

SHARED: dict[str, list[Patch]] = {
    # faults.CHANNEL
    "swapped stage budgets": [
        (_STAGES, _KEEP_QUERY, "keepProbability(params.urlShare, head.nQueries)"),
        (_STAGES, _KEEP_URL, "keepProbability(params.queryShare, width)"),
    ],
    "each stage has the whole budget": [
        (_STAGES, _KEEP_QUERY, "keepProbability(params.perRecord, head.nQueries)"),
        (_STAGES, _KEEP_URL, "keepProbability(params.perRecord, width)"),
    ],
    "budget not divided by m_C": [("params.js", "const m = whole(this.recordsPerClient);", "const m = whole(1);")],
    "delta not halved": [("randomized_response.js", "delta.times(others).over(whole(2))", "delta.times(others)")],
    "thresholds rounded up": [
        (
            _STAGES,
            _PRINTED,
            "  const up = head.nQueries > 1 ? 1n : 0n;\n"
            "  return new ReportProbabilities(keepQuery + up, keepRecord.map((kept) => kept + up), head.nUrls);",
        )
    ],
    "k one too small": [(_STAGES, _KEEP_QUERY, "keepProbability(params.queryShare, Math.max(head.nQueries - 1, 1))")],
    "k one too large": [(_STAGES, _KEEP_QUERY, "keepProbability(params.queryShare, head.nQueries + 1)")],
    "k_q one too small": [(_STAGES, _KEEP_URL, "keepProbability(params.urlShare, Math.max(width - 1, 1))")],
    "k_q one too large": [(_STAGES, _KEEP_URL, "keepProbability(params.urlShare, width === 1 ? 1 : width + 1)")],
    "missing wildcard among the queries": [
        (
            _LOCAL,
            "  const decision = word(randomness);",
            "  const decision = word(randomness);\n  if (query === probabilities.nQueries - 1) return [query, url];",
        )
    ],
    "missing wildcard among the URLs of a lie": [
        (
            _LOCAL,
            "uniformFromHalf(lie.low, probabilities.nUrls[other], randomness)",
            "uniformFromHalf(lie.low, Math.max(probabilities.nUrls[other] - 1, 1), randomness)",
        )
    ],
    # faults.RANDOMIZE
    "a lie may equal the truth": [
        (_LOCAL, "probabilities.nUrls[query] - 1, randomness", "probabilities.nUrls[query], randomness"),
        (_LOCAL, "otherUrl + Number(otherUrl >= url)", "otherUrl"),
    ],
    "<= for < at the threshold of the truth": [
        (_LOCAL, "decision < probabilities.keepRecordBelow[query]", "decision <= probabilities.keepRecordBelow[query]")
    ],
    "URL lies are not uniform": [
        (_LOCAL, "otherUrl + Number(otherUrl >= url)", "(url + 1) % probabilities.nUrls[query]")
    ],
    # best_faults.MECHANISM and WRONG_MECHANISM
    "mechanism: E doubled": [
        (
            _SETS,
            "const [growth] = expFractionBounds(epsilon);",
            "const [growth] = expFractionBounds(epsilon.plus(new Fraction(7n, 10n)));",
        )
    ],
    "mechanism: include rounded up by 3 words": [(_SETS, ".floor() - 1n;", ".floor() + 2n;")],
    "mechanism: include rounded up by a lot": [(_SETS, ".floor() - 1n;", ".floor() - 1n + (1n << 48n);")],
    "mechanism: sink rounded down": [(_SETS, "- 1n) / growth.numerator;", "- 1n) / growth.numerator - 1n;")],
    "mechanism: sink omitted": [(_SETS, _NEW_SETS, "new SubsetSelection(nItems, subsetSize, include, include)")],
    "mechanism: include and sink swapped": [
        (_SETS, _NEW_SETS, "new SubsetSelection(nItems, subsetSize, sink, include + sink)")
    ],
    "mechanism: e^(ε/2) for e^ε": [
        (
            _SETS,
            "const [growth] = expFractionBounds(epsilon);",
            "const [growth] = expFractionBounds(epsilon.over(whole(2)));",
        )
    ],
    # best_faults.REPORT
    "report: a lie may contain the own item": [
        (_SETS, "return without(item, uniformSubset(m - 1, d, randomness));", "return uniformSubset(m, d, randomness);")
    ],
    "report: holders never send the sink": [
        (
            _SETS,
            "if (decision < this.sinkBelow) return [];",
            "if (decision < this.sinkBelow) return uniformSubset(m, d, randomness);",
        )
    ],
    "report: sink swapped for ⋆": [
        (
            _SETS,
            "decision < this.includeBelow ? [] : uniformSubset(m, d, randomness)",
            "decision >= this.includeBelow ? [] : uniformSubset(m, d, randomness)",
        )
    ],
    "report: held item first": [
        (
            _SETS,
            "return ascending([item, ...without(item, uniformSubset(m - 1, d - 1, randomness))]);",
            "return [item, ...without(item, uniformSubset(m - 1, d - 1, randomness))];",
        )
    ],
    "report: others are not uniform": [
        (
            _SETS,
            "...without(item, uniformSubset(m - 1, d - 1, randomness))]",
            "...uniformSubset(m - 1, d - 1, randomness).map((_, i) => (item + i + 1) % m)]",
        )
    ],
    # best_faults.SEND, WRONG_SEND and SEND_SEVERAL
    "device: the coin looks at the record": [
        (
            _DEVICE,
            "coin(design, randomness) ?",
            "coin(listed && design.querySteps > 1 && design.querySteps < GAMMA_STEPS ? { ...design, querySteps: design.querySteps - 1 } : design, randomness) ?",
        )
    ],
    "device: an unlisted URL is ⋆": [
        (
            "records.js",
            "return this.#first[place] + (position < 0",
            "if (position < 0 && url !== null) return this.nCells - 1;\n    return this.#first[place] + (position < 0",
        )
    ],
    "device: the whole budget for each cell": [
        (_DEVICE, "import { remembered }", 'import { Fraction } from "./fraction.js";\nimport { remembered }'),
        (_DEVICE, "kind.of(params.perRecord.epsilon,", "kind.of(Fraction.ofNumber(params.epsilon),"),
    ],
    "device: a cell for every record": [
        (_DEVICE, "{ length: params.recordsPerClient }, () =>", "{ length: records.length }, () =>")
    ],
}

OWN: dict[str, list[Patch]] = {
    "true URL twice, last never": [(_LOCAL, "otherUrl + Number(otherUrl >= url)", "otherUrl")],
    "true query twice, last never": [(_LOCAL, "others + Number(others >= query)", "others")],
    "one half word for query and URL": [(_LOCAL, "uniformFromHalf(lie.high,", "uniformFromHalf(lie.low,")],
    "one URL lie in thirty is the truth": [
        (
            _STAGES,
            _PRINTED,
            "  return new ReportProbabilities(keepQuery, keepRecord.map((kept) => kept + (keepQuery - kept) / 30n), head.nUrls);",
        )
    ],
    "<= for < at the threshold of the query": [
        (_LOCAL, "decision < probabilities.keepQueryBelow", "decision <= probabilities.keepQueryBelow")
    ],
    "thresholds in floating point": [
        (
            _STAGES,
            f"{_KEEP_QUERY}.times(whole(WORDS)).floor()",
            f"BigInt(Math.floor((Number({_KEEP_QUERY}.times(whole(WORDS)).floor()) / 2 ** 64) * 2 ** 53)) << 11n",
        )
    ],
    "Math.exp for the series": [
        (
            "fixed_point.js",
            "  return [low, high + 1n];",
            "  const wrong = BigInt(Math.round(Math.exp(Number(x.numerator) / Number(x.denominator)) * 2 ** 40)) << 88n;\n  return [wrong, wrong + 1n];",
        )
    ],
    "the series ends early": [("fixed_point.js", "highTerm > 1n ||", "highTerm > 1n << 80n ||")],
    "modulo without rejection": [(_WORDS, "while (accepted >= acceptBelow(n))", "while (false)")],
    "rejection one too late": [(_WORDS, "return HALF - (HALF % n);", "return HALF - (HALF % n) + 1;")],
    "rejection of what is accepted": [
        (_WORDS, "while (accepted >= acceptBelow(n))", "while (accepted + n >= acceptBelow(n))")
    ],
    "bytes of a word reversed": [(_WORDS, "high: view.getUint32(4, true)", "high: view.getUint32(4, false)")],
    "53 bits of a word": [
        (
            _WORDS,
            "return (BigInt(high) << 32n) | BigInt(low);",
            "return ((BigInt(high) << 32n) | BigInt(low)) & ~0x7ffn;",
        )
    ],
    "one half twice in a word": [
        (_WORDS, "return (BigInt(high) << 32n) | BigInt(low);", "return (BigInt(low) << 32n) | BigInt(low);")
    ],
    "a draw where there is no choice": [(_WORDS, "return n === 1 ? 0 :", "return n === 0 ? 0 :")],
    "sets: a candidate that is taken vanishes": [(_SETS, "chosen.has(candidate) ? last : candidate", "candidate")],
    "sets: the last item never": [
        (_SETS, "uniformBelow(last + 1, randomness)", "uniformBelow(Math.max(last, 1), randomness)")
    ],
    "plain sets: rounded up": [
        (
            _SETS,
            "whole(nItems + 1 - subsetSize)))\n      .floor();",
            "whole(nItems + 1 - subsetSize)))\n      .floor() + 1n;",
        )
    ],
    "plain sets: ⋆ is no item": [(_SETS, "whole(nItems + 1 - subsetSize)", "whole(nItems - subsetSize + 0)")],
    "plain sets: one item more than said": [(_SETS, "this.subsetSize - Number(kept)", "this.subsetSize")],
    "plain sets: <= for <": [
        (_SETS, "word(randomness) < this.includeBelow;", "word(randomness) <= this.includeBelow;")
    ],
    "sets: <= for < at the sink": [(_SETS, "decision < this.sinkBelow", "decision <= this.sinkBelow")],
    "exact stages: the URL takes all that is left": [
        (
            _STAGES,
            "least(rest.over(whole(width)), growth.over(growth.plus(whole(width - 1))), whole(1))",
            "least(rest.over(whole(width - 1)), whole(1))",
        )
    ],
    "device: the coin in nineteenths": [(_DEVICE, "BigInt(GAMMA_STEPS);", "BigInt(GAMMA_STEPS - 1);")],
    "device: the coin the other way round": [
        (_DEVICE, "return word(randomness) < (WORDS", "return word(randomness) >= (WORDS")
    ],
    "device: always the first record": [
        (_DEVICE, "records[uniformBelow(records.length, randomness)]", "records[0]"),
        (_LOCAL, "records[uniformBelow(records.length, randomness)]", "records[0]"),
    ],
    "device: ⟨⋆,⋆⟩ is an item": [(_DEVICE, "cells.report(listed ? cell : null,", "cells.report(listed ? cell : 0,")],
    "device: a query's number for its cell": [
        (_DEVICE, "queries.report(listed ? head.queryOfCell(cell)", "queries.report(listed ? 0")
    ],
    "device: a single cell when two are asked for": [(_LOCAL, "i < params.recordsPerClient", "i < 1")],
}

MUTANTS = SHARED | OWN


def planted(name: str, folder: Path) -> Path:
    """A copy of the core with this fault."""
    copy = folder / "core"
    shutil.copytree(CORE, copy)
    for file, old, new in MUTANTS[name]:
        source = (copy / file).read_text(encoding="utf-8")
        assert old in source, f"{name}: {file} has changed: the fault must be planted anew"
        (copy / file).write_text(source.replace(old, new, 1), encoding="utf-8")
    (folder / "package.json").write_text('{"type": "module"}\n', encoding="utf-8")
    return copy
