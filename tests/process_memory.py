"""What a process holds in memory, looked for byte by byte."""

from __future__ import annotations

from pathlib import Path

_CHUNK = 2**20
"""small enough to stay in the processor's cache while it is searched"""


def found_in_memory(pid: int, needles: list[bytes]) -> set[bytes]:
    """Those of the needles that are in the memory that the process can write; the search ends with the last one."""
    missing, found = set(needles), set[bytes]()
    longest = max(map(len, needles))
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            at, end = (int(text, 16) for text in span.split("-"))
            tail = b""
            while at < end and missing:
                try:
                    memory.seek(at)
                    content = memory.read(min(_CHUNK, end - at))
                except OSError:
                    break
                if not content:
                    break
                searched = tail + content
                found |= {needle for needle in missing if needle in searched}
                missing -= found
                tail, at = content[-longest:], at + len(content)
    return found
