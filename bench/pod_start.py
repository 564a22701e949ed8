"""What the sidecar costs a driver's start, on a real node: `python -m bench.pod_start` (root).

Jobs with one executor are submitted one after the other, by turns with the native pod template and without, `--lives`
times each. Instants come from outside the agent: a watch of the Pod, the kernel's start times of processes, the job's
own log. Prints medians and their differences.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Mapping, Sequence

from sandbox.node.cluster import Cluster, started
from sandbox.node.containers import main_process, started_at
from sandbox.node.steps import steps_in
from sandbox.pods import DRIVER_CONTAINER
from tests.e2e.scene import Plan, played

STEPS = ("context", "executors:1", "await:end")
# the native pod template, and none
VARIANTS = ("native", "")
SPANS = ("scheduled -> driver's process", "driver's process -> executor registered")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.pod_start", description=__doc__)
    parser.add_argument("--lives", type=int, default=7, help="jobs of each kind (default: %(default)s)")
    lives = parser.parse_args().lives
    with started() as cluster:
        found = asyncio.run(_measure(cluster, lives))
    for line in report(found):
        print(line)


async def _measure(cluster: Cluster, lives: int) -> Mapping[str, list[Sequence[float]]]:
    found: dict[str, list[Sequence[float]]] = {variant: [] for variant in VARIANTS}
    for number in range(1, lives + 1):
        for variant in VARIANTS:
            print(f"pod_start: {number} of {lives}, {_named(variant)}", file=sys.stderr, flush=True)
            found[variant].append(await _live(cluster, variant))
    return found


async def _live(cluster: Cluster, variant: str) -> Sequence[float]:
    """Return the length of each of `SPANS`, in seconds."""
    async with played(cluster, Plan("start", STEPS, variant, executors=1)) as scene:
        await scene.driver.until_pod(lambda pod: bool(pod["spec"].get("nodeName")))
        scheduled = time.monotonic()
        pod = await scene.driver.until("Running")
        process = started_at(main_process(pod, DRIVER_CONTAINER))
        await scene.driver.until_step("executors")
        epoch = time.time() - time.monotonic()
        registered = next(
            step.at - epoch for step in steps_in(await scene.driver.log()) if step.name == "executors"
        )
        await scene.driver.steer("end")
        await scene.ended()
        return process - scheduled, registered - process


def report(found: Mapping[str, list[Sequence[float]]]) -> list[str]:
    """The table, two lines per span: the median and the least, in ms, and how much later the sidecar makes it."""
    lines = [f"{'ms':48}{'without':>10}{'with':>10}{'later':>10}"]
    for number, span in enumerate(SPANS):
        for name, of in (("median", statistics.median), ("least", min)):
            there, without = (of([life[number] * 1000 for life in found[variant]]) for variant in VARIANTS)
            lines.append(f"{f'{span}, {name}':48}{without:10.0f}{there:10.0f}{there - without:+10.0f}")
    return lines


def _named(variant: str) -> str:
    return f"with deploy/{variant}" if variant else "without the agent"


if __name__ == "__main__":
    main()
