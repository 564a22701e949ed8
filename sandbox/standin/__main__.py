"""``python -m sandbox.standin``: a stand-in API server in the foreground, open to all on loopback."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys

from sandbox.standin import StandIn
from sandbox.standin.standin import SETTLE_SECONDS


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sandbox.standin",
        description="Serve a stand-in for kube-apiserver on loopback until Ctrl-C or SIGTERM.",
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument("--tls", action="store_true", help="serve HTTPS with a certificate of its own CA")
    parser.add_argument(
        "--rbac", action="store_true", help="give no rights to requests without a token (default: all rights)"
    )
    parser.add_argument(
        "--settle",
        type=float,
        default=SETTLE_SECONDS,
        metavar="SECONDS",
        help="time from a write to what the controllers make of it (default: %(default)s)",
    )
    return parser


async def _serve(options: argparse.Namespace) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with StandIn.start(
        tls=options.tls, open_to_all=not options.rbac, settle_delay=options.settle, port=options.port
    ) as api:
        print(f"URL={api.url}")
        if api.ca_file is not None:
            print(f"CA_FILE={api.ca_file}")
        print(f"TOKEN_FILE={api.token_file}", flush=True)
        await ended.wait()


def main() -> int:
    """Serve until told to end; 1 with a message when the port can't be had."""
    options = _arguments().parse_args()
    try:
        asyncio.run(_serve(options))
    except OSError as error:
        print(f"can't listen on port {options.port}: {error}; name another with --port", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
