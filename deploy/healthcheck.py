"""The container's health check: asks /healthz where the environment (SEARCHBLEND_PORT, …) says that the server is.

Exit code 0 if it answers. The role ``curator`` has no port: its container lives as long as its process does.
"""

from __future__ import annotations

import ssl
import sys
import urllib.request

from searchblend.server.serve_settings import load_settings

EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104  # what it listens on, not what is asked
SECONDS = 2


def main() -> int:
    settings = load_settings({})
    if settings.role == "curator":
        return 0
    host = "127.0.0.1" if settings.host in EVERYWHERE else settings.host
    place = f"[{host}]" if ":" in host else host
    scheme = "https" if settings.tls_certificate else "http"
    # The certificate is for the name that others use; here the question is only whether somebody answers.
    context = ssl._create_unverified_context() if scheme == "https" else None  # noqa: S323
    try:
        urllib.request.urlopen(f"{scheme}://{place}:{settings.port}/healthz", timeout=SECONDS, context=context)  # noqa: S310
    except OSError as error:
        print(f"{type(error).__name__}: no answer at port {settings.port}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
