"""Who may connect where in a driver's network, and what a capture says of it.

A stranger's connection hurts: one silent connection to PySpark's accumulator server hangs the job, a request to
Spark's RPC or block manager writes a stack trace into the driver's log (both seen with Spark 3.5 to 4.3).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sandbox.capture import Connection, most_at_once
from sandbox.spark.trace import Trace

# starting up, the first REST answer, and some patience on a slow machine, at growing distances
FEW = 10


def complaints(
    connections: Sequence[Connection], trace: Trace, sources: Collection[str], *, own: Collection[int] = ()
) -> list[str]:
    """Return what a stranger with these source addresses did that it must not; no complaint: it did no harm.

    Allowed are ``own`` ports (the stranger's way to its API server), and the driver's UIs: one connection at a time to
    each, and `FEW` in all. Everything else, whatever listens there, is a complaint.
    """
    strangers = [one for one in connections if one.source in sources and one.port not in own]
    uis = {context.port for context in trace.contexts}
    found = [
        f"connected to port {one.port} ({_what(one.port, trace)}) {one.segments} segments sent"
        for one in strangers
        if one.port not in uis
    ]
    for port in sorted(uis):
        asked = [one for one in strangers if one.port == port]
        if len(asked) > FEW:
            found.append(f"connected {len(asked)} times to the UI on port {port}, more than {FEW}")
        if (most := most_at_once(asked)) > 1:
            found.append(f"{most} connections at once to the UI on port {port}")
    return found


def _what(port: int, trace: Trace) -> str:
    for context in trace.contexts:
        for name in ("rpc", "block_manager", "py4j", "accumulator"):
            if getattr(context, name) == port:
                return name
    return "unknown"
