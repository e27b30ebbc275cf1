"""Local search in real Chromium: a pack of 16,000 pairs against a plain JavaScript Map of the same pairs.

Both lie in IndexedDB, the pack as bytes and the Map's content as JSON. A cold load is what a worker does when it starts:
read, check, answer the first letters. Each is done in a fresh page, in turn, and medians are compared. A lookup's time is the median of five of the same text. Aims: 50 ms for a cold
load, 1 ms for the 99th percentile of a lookup.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.server
import json
import random
import shutil
import statistics
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

from searchblend.core.normalization import normalize, normalize_url
from searchblend.search.pack import PackEntry, PackInfo, PackUrl, best_first, encode_pack
from searchblend.synthetic.aol import aol_chunk
from searchblend.synthetic.pieces import aol_table, chunk_generator

EXTENSION = Path(__file__).parents[1] / "extension"
INFO = PackInfo("best", 4.0, 1e-5, bytes(range(16)), 1)
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
CHUNK = 4096
PAGE = b"""<!doctype html><meta charset=utf-8><title>bench</title><script type=module>
import { openPack } from "/src/core/index.js";
import { searchPacks } from "/src/device/packs.js";
import { IndexedStorage } from "/src/device/storage.js";
const storage = await IndexedStorage.open("bench");
const read = (key) => storage.read((transaction) => transaction.get("packs", key));
const bytes = async (path) => new Uint8Array(await (await fetch(path)).arrayBuffer());

window.keep = async () => {
  const [pack, json] = [await bytes("/pack"), await (await fetch("/json")).text()];
  await storage.writeDurably(async (transaction) => {
    await transaction.put("packs", "pack", { content: pack });
    await transaction.put("packs", "json", { content: json });
  });
};
window.coldPack = async (artifact) => {
  const start = performance.now();
  const { content } = await read("pack");
  const index = await openPack(content, { artifact, checked: true });
  index.search("wea", { limit: 8 });
  const loaded = performance.now();
  index.search("wetaher", { limit: 8 });
  return [loaded - start, performance.now() - loaded];
};
window.coldMap = async () => {
  const start = performance.now();
  const { content } = await read("json");
  const map = new Map(JSON.parse(content));
  map.get("weather");
  return performance.now() - start;
};
window.arrival = async () => {
  const { content } = await read("pack");
  const start = performance.now();
  await openPack(content);
  return performance.now() - start;
};
const once = (act, text) => {
  const start = performance.now();
  act(text);
  return performance.now() - start;
};
// The median of five for each text: what other programs on the machine take away is not the lookup's.
const timed = (act, texts) => texts.map((text) => [1, 2, 3, 4, 5].map(() => once(act, text)).sort((a, b) => a - b)[2]);
window.lookups = async (texts) => {
  const { content } = await read("pack");
  const index = await openPack(content, { checked: true });
  const map = new Map(JSON.parse((await read("json")).content));
  const result = {};
  for (const [kind, list] of Object.entries(texts)) {
    timed((text) => searchPacks([index], text, 8), list.slice(0, 200));
    result[kind] = timed((text) => searchPacks([index], text, 8), list);
  }
  result["Map, exact alone"] = timed((text) => map.get(text), texts.exact);
  return result;
};
document.title = "ready";
</script>"""


def common_pairs(n: int) -> list[tuple[str, str, int]]:
    """The most clicked pairs of synthetic people: texts as long as those of a real log."""
    counts: Counter[tuple[str, str]] = Counter()
    number = 0
    while len(counts) < n:
        text = bytes(aol_table(aol_chunk(number * CHUNK, CHUNK, 16 * CHUNK, chunk_generator(1, number)))).decode()
        for fields in (line.split("\t") for line in text.split("\n")):
            if len(fields) > 2 and fields[2]:
                counts[normalize(fields[1]) or "", normalize_url(fields[2]) or ""] += 1
        number += 1
    return [(query, url, count) for (query, url), count in counts.most_common(n)]


def made_pack(pairs: list[tuple[str, str, int]]) -> bytes:
    urls: dict[str, list[PackUrl]] = {}
    for query, url, count in pairs:
        urls.setdefault(query, []).append(PackUrl(url, count * 8, count * 10))
    entries = [
        PackEntry(
            query,
            max(url.lower for url in found),
            sum(url.probability for url in found),
            tuple(sorted(found, key=best_first)),
        )
        for query, found in urls.items()
    ]
    return encode_pack(INFO, entries)


def made_json(pairs: list[tuple[str, str, int]]) -> bytes:
    found: dict[str, list[object]] = {}
    for query, url, count in pairs:
        found.setdefault(query, []).append([url, count / 1e6])
    return json.dumps(list(found.items()), separators=(",", ":")).encode()


def typed(pairs: list[tuple[str, str, int]], n: int) -> dict[str, list[str]]:
    """Whole queries, their beginnings, and queries with a letter that is wrong."""
    generator = random.Random(3)
    queries = [query for query, _, _ in generator.choices(pairs, k=n)]
    wrong = []
    for query in queries:
        place = generator.randrange(len(query))
        wrong.append(query[:place] + generator.choice("aeinrst") + query[place + 1 :])
    return {
        "exact": queries,
        "beginning": [query[: generator.randint(1, 5)] for query in queries],
        "one letter wrong": wrong,
    }


@contextlib.contextmanager
def served(files: dict[str, tuple[bytes, str]]) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content, kind = files.get(self.path) or (
                (EXTENSION / self.path.lstrip("/")).read_bytes(),
                "text/javascript",
            )
            self.send_response(200)
            for name, value in (
                ("Content-Type", kind),
                ("Content-Length", str(len(content))),
                # a page of its own process gets a clock of 5 microseconds instead of 100
                ("Cross-Origin-Opener-Policy", "same-origin"),
                ("Cross-Origin-Embedder-Policy", "require-corp"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def measure(pack: bytes, content: bytes, texts: dict[str, list[str]], loads: int) -> dict[str, object]:
    files = {
        "/": (PAGE, "text/html"),
        "/pack": (pack, "application/octet-stream"),
        "/json": (content, "application/json"),
    }
    files["/favicon.ico"] = (b"", "image/x-icon")
    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("chromium is not installed: run `make browsers`")
    artifact = hashlib.sha256(pack).hexdigest()
    with served(files) as address, tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            folder, executable_path=browser, headless=True, args=FLAGS
        )

        def in_a_fresh_page(expression: str, *arguments: object) -> object:
            page = context.new_page()
            page.goto(address)
            page.wait_for_function("document.title === 'ready'")
            result = page.evaluate(expression, *arguments)
            page.close()
            return result

        in_a_fresh_page("window.keep()")
        cold: dict[str, list[float]] = {"pack": [], "first_typo": [], "map": [], "arrival": []}
        for _ in range(loads):
            loaded, first_typo = in_a_fresh_page("(artifact) => window.coldPack(artifact)", artifact)
            cold["pack"].append(loaded)
            cold["first_typo"].append(first_typo)
            cold["map"].append(in_a_fresh_page("window.coldMap()"))
            cold["arrival"].append(in_a_fresh_page("window.arrival()"))
        lookups = in_a_fresh_page("(texts) => window.lookups(texts)", texts)
        context.close()
    return {"cold": cold, "lookups": lookups}


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=16_000)
    parser.add_argument("--loads", type=int, default=15, help="fresh pages for each kind of load")
    parser.add_argument("--lookups", type=int, default=5_000, help="of each kind")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    pairs = common_pairs(options.pairs)
    pack, content = made_pack(pairs), made_json(pairs)
    found = measure(pack, content, typed(pairs, options.lookups), options.loads)
    cold = {
        name: {"median_ms": statistics.median(times), "best_ms": min(times)} for name, times in found["cold"].items()
    }
    lookups = {
        kind: {"median_us": 1e3 * percentile(times, 0.5), "p99_us": 1e3 * percentile(times, 0.99)}
        for kind, times in found["lookups"].items()
    }
    sizes = {"pairs": len(pairs), "pack_bytes": len(pack), "json_bytes": len(content)}
    if options.json:
        print(json.dumps({**sizes, "cold": cold, "lookups": lookups}))
        return
    print(f"{len(pairs):,} pairs: pack {len(pack) / len(pairs):.1f} bytes a pair, JSON {len(content) / len(pairs):.1f}")
    ratio = cold["pack"]["median_ms"] / cold["map"]["median_ms"]
    print(
        f"cold load, pack      {cold['pack']['median_ms']:6.1f} ms (best {cold['pack']['best_ms']:.1f}), {ratio:.2f} of the Map's"
    )
    print(f"cold load, JSON Map  {cold['map']['median_ms']:6.1f} ms (best {cold['map']['best_ms']:.1f})")
    print(
        f"first typing error   {cold['first_typo']['median_ms']:6.1f} ms (best {cold['first_typo']['best_ms']:.1f}), once after a load"
    )
    print(
        f"checking a new pack  {cold['arrival']['median_ms']:6.1f} ms (best {cold['arrival']['best_ms']:.1f}), once when it arrives"
    )
    for kind, times in lookups.items():
        name = kind if kind.startswith("Map") else f"pack, {kind}"
        print(f"lookup, {name:22} median {times['median_us']:7.1f} us, p99 {times['p99_us']:7.1f} us")


if __name__ == "__main__":
    main()
