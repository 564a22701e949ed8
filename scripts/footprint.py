"""What the running agent costs: memory and CPU in the environment that the image ships, without test packages.

    python -m scripts.footprint [--lives 7] [--idle 10] [--environment DIR]

Each life is one agent process against the stand-in API server (TLS) with a UI that answers like Spark's: started,
published, left idle, ended by SIGTERM. Printed are the median and the worst of all lives.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields
from pathlib import Path

from sandbox.agent import Place
from sandbox.enter import set_network_namespace
from sandbox.netns import NetworkNamespace
from sandbox.pods import create_namespace, create_node, create_pod
from sandbox.standin import StandIn
from scripts.footprint_life import Life, live
from scripts.image_env import BuildError, build

APPLICATION = "spark-00000000000000000000000000000001"
BACKLOG = 1  # Jetty's on a small Pod

ROWS = {
    "waiting_ms": ("CPU from exec to looking for the UI", "ms", 250),
    "published_ms": ("CPU from exec to published", "ms", None),
    "rss_mib": ("RSS, steady", "MiB", 48),
    "anonymous_mib": ("of it anonymous (what counts first against a limit)", "MiB", None),
    "idle_mcpu": ("CPU, published and idle", "mCPU", 4),
    "threads": ("threads", "", None),
}


@contextlib.contextmanager
def network() -> Iterator[str]:
    """Move this process into a network namespace of its own, where nobody else's sockets are; yield the Pod's IP."""
    if os.geteuid() != 0:
        print("footprint: not root: the agent sees the listeners of this whole machine", file=sys.stderr)
        yield "127.0.0.1"
        return
    with NetworkNamespace.create() as namespace:
        set_network_namespace(namespace.fd)
        yield namespace.address


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request as the REST API of a Spark driver does, and close."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        await reader.readuntil(b"\r\n\r\n")
        attempt = {"startTimeEpoch": 1767225600000, "endTimeEpoch": -1, "completed": False}
        body = json.dumps([{"id": APPLICATION, "name": "footprint", "attempts": [attempt]}]).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def scene(ip: str) -> AsyncIterator[Place]:
    """The stand-in with the driver's Pod in it, and the UI."""
    async with (
        StandIn.start(tls=True) as api,
        await asyncio.start_server(answer, "0.0.0.0", 0, backlog=BACKLOG),
    ):
        await create_namespace(api.admin, "footprint")
        await create_node(api.admin)
        labels = {"spark-app-selector": APPLICATION, "spark-role": "driver"}
        pod = await create_pod(api.admin, "footprint", "footprint-driver", labels=labels, ip=ip)
        if api.ca_file is None:
            raise ValueError("the stand-in was started without TLS")
        uid = pod["metadata"]["uid"]
        files = (api.token_file, api.ca_file)
        yield Place("footprint-driver", uid, "footprint", APPLICATION, api.url, *files, ip=ip)


async def measure(environment: Path, lives: int, idle: float) -> list[Life]:
    """All lives, one after the other."""
    found = []
    with network() as ip:
        for number in range(lives):
            print(f"footprint: life {number + 1} of {lives} ...", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(prefix="footprint-") as folder:
                async with scene(ip) as place:
                    found.append(await live(environment, place, Path(folder), idle))
    return found


def table(lives: list[Life], idle: float) -> str:
    """The result, for people."""
    shown = [f"Python {platform.python_version()}, {len(lives)} lives, idle for {idle:g} s each"]
    shown.append(f"{'':52} {'median':>8} {'worst':>8} {'budget':>8}")
    for one in fields(Life):
        what, unit, budget = ROWS[one.name]
        values = [getattr(life, one.name) for life in lives]
        limit = "" if budget is None else f"{budget:g}"
        shown.append(
            f"{what:52} {statistics.median(values):8.1f} {max(values):8.1f} {limit:>8} {unit}".rstrip()
        )
    return "\n".join(shown)


def main() -> int:
    """Measure from the command line: 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lives", type=int, default=7)
    parser.add_argument("--idle", type=float, default=10.0, help="seconds (default: %(default)s)")
    parser.add_argument(
        "--environment", type=Path, help="one made by scripts/image_env.py (default: a new one)"
    )
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="footprint-env-") as folder:
            environment: Path = options.environment or Path(folder) / "env"
            if options.environment is None:
                build(environment)
            lives = asyncio.run(measure(environment.resolve(), options.lives, options.idle))
    except (BuildError, RuntimeError, OSError) as error:
        print(f"footprint: {error}", file=sys.stderr)
        return 1
    print(table(lives, options.idle))
    return 0


if __name__ == "__main__":
    sys.exit(main())
