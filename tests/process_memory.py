"""What a process holds in memory, looked for byte by byte."""

from __future__ import annotations

from pathlib import Path

_CHUNK = 2**24


def found_in_memory(pid: int, needles: list[bytes]) -> set[bytes]:
    """Those of the needles that are somewhere in the memory that the process can write."""
    found: set[bytes] = set()
    longest = max(map(len, needles))
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            at, end = (int(text, 16) for text in span.split("-"))
            tail = b""
            while at < end:
                try:
                    memory.seek(at)
                    content = memory.read(min(_CHUNK, end - at))
                except OSError:
                    break
                if not content:
                    break
                found |= {needle for needle in needles if needle in tail + content}
                tail, at = content[-longest:], at + len(content)
    return found
