"""``searchblend relay``: bring devices' sealed requests to one gateway, without saying whose they are."""

from __future__ import annotations

import argparse

from searchblend.cli.service_options import add_public_server, given_settings, print_addresses
from searchblend.core.errors import InvalidParameter
from searchblend.service.settings import HEALTH_OFFSET, LARGEST_PORT

EXAMPLES = """\
examples:
  searchblend relay --gateway https://lists.example/.well-known/ohttp-gateway
  searchblend relay --gateway https://lists.example/.well-known/ohttp-gateway --delay 5 --batch 200
  searchblend relay --gateway URL --listen 0.0.0.0:443 --tls-certificate chain.pem --tls-key key.pem
"""


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
    parser.add_argument("--gateway-seconds", type=float, metavar="S", help="seconds for the gateway to answer (15)")
    add_public_server(parser)
    parser.add_argument(
        "--plain-http", action="store_true", help="allow http to a gateway on another machine (not private)"
    )


def run(options: argparse.Namespace) -> None:
    from searchblend.service.relay import RelaySettings, run_relay

    host, port = _place("listen", options.listen)
    usual = f"127.0.0.1:{port and port + HEALTH_OFFSET}"
    health_host, health_port = _place("health_listen", options.health_listen or usual)
    settings = given_settings(
        RelaySettings, options, host=host, port=port, health_host=health_host, health_port=health_port
    )
    run_relay(settings, on_ready=print_addresses)


def _place(field: str, place: str) -> tuple[str, int]:
    host, colon, port = place.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdecimal()) or int(port) > LARGEST_PORT:
        raise InvalidParameter(field, f"expected HOST:PORT with a port of at most {LARGEST_PORT}")
    return host.removeprefix("[").removesuffix("]"), int(port)
