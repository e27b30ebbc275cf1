"""The container's health check: asks /healthz where the environment (SEARCHBLEND_HEALTH_PORT, …) says that it is.

Exit code 0 if it answers. The role ``curator`` has no port: its container lives as long as its process does.
"""

from __future__ import annotations

import sys
import urllib.request

from searchblend.service.settings import load_settings

EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104  # what it listens on, not what is asked
SECONDS = 4


def main() -> int:
    settings = load_settings({})
    if settings.role == "curator":
        return 0
    host = "127.0.0.1" if settings.health_host in EVERYWHERE else settings.health_host
    place = f"[{host}]" if ":" in host else host
    port = settings.health_listens
    try:
        urllib.request.urlopen(f"http://{place}:{port}/healthz", timeout=SECONDS)
    except OSError as error:
        print(f"{type(error).__name__}: no answer at port {port}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
