"""``searchblend relay``: bring devices' sealed requests to one gateway, without saying whose they are."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import Any

from searchblend.core.errors import InvalidParameter

EXAMPLES = """\
examples:
  searchblend relay --gateway https://lists.example/.well-known/ohttp-gateway
  searchblend relay --gateway https://lists.example/.well-known/ohttp-gateway --delay 5 --batch 200
  searchblend relay --gateway URL --listen 0.0.0.0:443 --tls-certificate chain.pem --tls-key key.pem
"""
_LARGEST_PORT = 65_535
_HEALTH_OFFSET = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gateway", required=True, metavar="URL", help="the one gateway that requests are brought to")
    parser.add_argument(
        "--listen", metavar="HOST:PORT", default="127.0.0.1:8480", help="where devices ask (127.0.0.1:8480)"
    )
    parser.add_argument(
        "--health-listen",
        metavar="HOST:PORT",
        help="health and metrics (127.0.0.1, 1000 more than the port of --listen)",
    )
    parser.add_argument(
        "--delay", type=float, metavar="S", help="seconds that a request waits for others (1, at most 10)"
    )
    parser.add_argument(
        "--batch", type=int, metavar="N", help="requests that leave at once without waiting longer (64)"
    )
    parser.add_argument(
        "--tls-certificate", metavar="FILE", help="certificate chain in PEM; without it put a proxy in front"
    )
    parser.add_argument("--tls-key", metavar="FILE", help="its private key in PEM")
    parser.add_argument("--connections", type=int, metavar="N", help="connections open at once (4000)")
    parser.add_argument("--peer-seconds", type=float, metavar="S", help="seconds for a device to send or to read (30)")
    parser.add_argument("--gateway-seconds", type=float, metavar="S", help="seconds for the gateway to answer (15)")
    parser.add_argument("--stop-seconds", type=float, metavar="S", help="seconds to end after SIGTERM (30)")
    parser.add_argument(
        "--plain-http", action="store_true", help="allow http to a gateway on another machine (not private)"
    )


def run(options: argparse.Namespace) -> None:
    from searchblend.service.relay import RelaySettings, run_relay

    host, port = _place("listen", options.listen)
    usual = f"127.0.0.1:{port and port + _HEALTH_OFFSET}"
    health_host, health_port = _place("health_listen", options.health_listen or usual)
    given: dict[str, Any] = {"host": host, "port": port, "health_host": health_host, "health_port": health_port}
    names = {field.name for field in fields(RelaySettings)} - set(given)
    given |= {name: value for name, value in vars(options).items() if name in names and value is not None}
    run_relay(RelaySettings(**given), on_ready=_print_addresses)


def _place(field: str, place: str) -> tuple[str, int]:
    host, colon, port = place.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdecimal()) or int(port) > _LARGEST_PORT:
        raise InvalidParameter(field, f"expected HOST:PORT with a port of at most {_LARGEST_PORT}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _print_addresses(address: str, health: str) -> None:
    print(f"{address}\nhealth: {health}", flush=True)
