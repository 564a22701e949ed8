"""What the sidecar costs a driver's start, on a real node: `python -m bench.pod_start` (root).

Jobs with one executor are submitted one after the other, `--lives` times each: without a sidecar, with a native sidecar
that does nothing at all, and with the native pod template. The kubelet's own price of any native sidecar is the second's
(it looks at its containers once a second, and starts the driver's when it has seen the sidecar run); ours is what comes
on top. What comes before the Pod's sandbox has nothing to do with either: spark-submit makes the ConfigMap that
the Pod mounts after the Pod, and a kubelet that is faster tries again half a second later. Instants come from outside the
agent: a watch of the Pod, the kernel's start times of processes (to 10 ms), the job's own log. Prints medians and quartiles.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Mapping, Sequence

from sandbox.apiclient import Object
from sandbox.node.cluster import Cluster, started
from sandbox.node.containers import main_process, sandbox_started_at, started_at
from sandbox.node.steps import steps_in
from sandbox.node.templates import agent_container
from sandbox.pods import DRIVER_CONTAINER
from tests.e2e.scene import Plan, played

STEPS = ("context", "executors:1", "await:end")
IDLE = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); signal.pause()"
SPANS = (
    "scheduled -> sandbox",
    "sandbox -> driver's process",
    "driver's process -> executor registered",
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.pod_start", description=__doc__)
    parser.add_argument("--lives", type=int, default=7, help="jobs of each kind (default: %(default)s)")
    lives = parser.parse_args().lives
    with started() as cluster:
        found = asyncio.run(_measure(cluster, lives))
    for line in report(found):
        print(line)


def _idle(pod: Object) -> None:
    """Put a process that only waits for its end in the agent's place."""
    container = agent_container(pod)
    container["command"] = ["python3", "-c", IDLE]
    del container["lifecycle"]
    for driver in pod["spec"]["containers"]:
        driver["env"] = []  # the files that it names are the agent's


VARIANTS: Mapping[str, Plan] = {
    "alone": Plan("alone", STEPS, executors=1),
    "idle sidecar": Plan("idle", STEPS, "native", _idle, executors=1),
    "the agent": Plan("agent", STEPS, "native", executors=1),
}


async def _measure(cluster: Cluster, lives: int) -> Mapping[str, list[Sequence[float]]]:
    found: dict[str, list[Sequence[float]]] = {variant: [] for variant in VARIANTS}
    for number in range(1, lives + 1):
        for variant in VARIANTS:
            print(f"pod_start: {number} of {lives}, {variant}", file=sys.stderr, flush=True)
            found[variant].append(await _live(cluster, VARIANTS[variant]))
    return found


async def _live(cluster: Cluster, plan: Plan) -> Sequence[float]:
    """Return the length of each of `SPANS`, in seconds."""
    async with played(cluster, plan) as scene:
        await scene.driver.until_pod(lambda pod: bool(pod["spec"].get("nodeName")))
        scheduled = time.monotonic()
        pod = await scene.driver.until("Running")
        sandbox, process = sandbox_started_at(pod), started_at(main_process(pod, DRIVER_CONTAINER))
        await scene.driver.until_step("executors")
        epoch = time.time() - time.monotonic()
        registered = next(
            step.at - epoch for step in steps_in(await scene.driver.log()) if step.name == "executors"
        )
        await scene.driver.steer("end")
        await scene.ended()
        return sandbox - scheduled, process - sandbox, registered - process


def report(found: Mapping[str, list[Sequence[float]]]) -> list[str]:
    """The table, in ms: lower quartile, median and upper quartile, and how much later than alone the median is."""
    lines = []
    for number, span in enumerate(SPANS):
        lines.append(f"{f'{span}, ms':46}{'25%':>8}{'50%':>8}{'75%':>8}{'later':>8}")
        base = statistics.median(life[number] for life in found["alone"]) * 1000
        for variant, lives in found.items():
            low, middle, high = statistics.quantiles(
                [life[number] * 1000 for life in lives], method="inclusive"
            )
            lines.append(f"  {variant:44}{low:8.0f}{middle:8.0f}{high:8.0f}{middle - base:+8.0f}")
    return lines


if __name__ == "__main__":
    main()
