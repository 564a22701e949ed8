"""How long before the UI's closing the Service led to nothing, and what that cost the driver: `python -m bench.margins`.

Real drivers on the real control plane, each Spark version in each way of ending, `--lives` times each. All instants come from
outside the agent: a watch, the kernel's destroy event, the packets to the hook's port. Ends with 1 when at any orderly
end the Service still led to the UI as its port closed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from sandbox.control_plane import ControlPlane
from sandbox.prompt import run_promptly
from sandbox.spark.install import VERSIONS
from tests.spark.hook_endings import Cell, record
from tests.spark.hook_lives import Ending, violations

HEADINGS = ("n", "min", "p50", "p90", "p99", "max")


def main() -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.margins", description=__doc__)
    parser.add_argument("--lives", type=int, default=20, help="endings of each kind (default: %(default)s)")
    parser.add_argument("--versions", nargs="+", choices=VERSIONS, default=VERSIONS)
    arguments = parser.parse_args()
    endings = run_promptly(_measure(arguments.lives, arguments.versions))
    print("\n\n".join(report(endings)))
    wrong = [
        f"{cell}: {said}"
        for cell, found in sorted(endings.items())
        if _announced(cell)
        for ending in found
        for said in violations(ending.history, [ending.listener], ending.ip)
    ]
    for line in wrong:
        print(f"margins: {line}", file=sys.stderr)
    return 1 if wrong else 0


async def _measure(lives: int, versions: Sequence[str]) -> Mapping[Cell, list[Ending]]:
    count = 0

    def told(cell: Cell, ending: Ending) -> None:
        nonlocal count
        count += 1
        print(f"margins: {count}: {cell}: {ending.margin / 1e6:+.1f} ms", file=sys.stderr, flush=True)

    async with ControlPlane.start() as plane:
        return await record(plane, lives=lives, versions=versions, told=told)


def report(endings: Mapping[Cell, list[Ending]]) -> Iterable[str]:
    """The tables, one string each."""
    announced = {cell: found for cell, found in endings.items() if _announced(cell)}
    others = {cell: found for cell, found in endings.items() if not _announced(cell)}
    stops = {cell: found for cell, found in endings.items() if cell.way == "stop()"}
    yield _table("led to nothing -> port closed, ms (positive: gone before it is gone)", announced, _margin)
    yield _table("the driver waited for the agent's answer, ms", announced, _held)
    yield _table(
        "stop() called -> port closed, ms", stops, lambda ending: ending.closed_at - ending.asked_for
    )
    yield _table(
        "stop() called -> stop() returned, ms", stops, lambda ending: ending.done_at - ending.asked_for
    )
    yield _table(
        "without an announcement: port closed -> led to nothing, ms", others, lambda one: -one.margin
    )


def _announced(cell: Cell) -> bool:
    return cell.hook and cell.way != "SIGKILL"


def _margin(ending: Ending) -> int:
    return ending.margin


def _held(ending: Ending) -> int:
    return sum(post.closed_at - post.opened_at for post in ending.held if post.closed_at is not None)


def _table(title: str, endings: Mapping[Cell, list[Ending]], value: Callable[[Ending], int]) -> str:
    rows = [f"{title}\n{'':28}" + "".join(f"{heading:>8}" for heading in HEADINGS)]
    cells = {str(cell): found for cell, found in sorted(endings.items())}
    if len(cells) > 1:
        cells["all"] = [ending for found in endings.values() for ending in found]
    for name, found in cells.items():
        figures = distribution([value(ending) / 1e6 for ending in found])
        rows.append(f"{name:28}{len(found):8}" + "".join(f"{figure:8.1f}" for figure in figures))
    return "\n".join(rows)


def distribution(values: Sequence[float]) -> tuple[float, float, float, float, float]:
    """Minimum, p50, p90, p99 and maximum; percentiles between two values are interpolated."""
    if len(values) == 1:
        return values[0], values[0], values[0], values[0], values[0]
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return min(values), cuts[49], cuts[89], cuts[98], max(values)


if __name__ == "__main__":
    sys.exit(main())
