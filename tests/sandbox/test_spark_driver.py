"""Real drivers under the harness: each life is lived once, and its trace is what the tests look at."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sandbox.capture import Connection, capture
from sandbox.control_plane import ControlPlane
from sandbox.launch import REPOSITORY
from sandbox.netns import NetworkNamespace
from sandbox.objects import Rule, create_namespace, pods, service_account_with_role
from sandbox.page import Page, fetch
from sandbox.relay import relay
from sandbox.spark.driver import DriverError, SparkDriver
from sandbox.spark.install import VERSIONS
from sandbox.spark.keystore import write_keystore
from sandbox.spark.master import KubernetesMaster
from sandbox.spark.trace import Context, Trace
from tests.sandbox.processes import survivors

pytestmark = pytest.mark.spark

APPLICATION = "spark-00c0ffee"
SPARK_UID = 185
RIGHTS = [
    Rule(
        ["pods", "services", "configmaps", "persistentvolumeclaims"],
        ["get", "list", "watch", "delete", "deletecollection"],
    )
]


@dataclass
class Life:
    """What was seen while a driver lived."""

    trace: Trace = field(default_factory=Trace)
    result: object = None
    rest_id: str = ""
    exit_code: int = 0
    connections: list[Connection] = field(default_factory=list)
    observer: str = ""
    pods: list[object] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)


@pytest.fixture(scope="module", params=VERSIONS)
def cluster_life(
    request: pytest.FixtureRequest,
    needs_namespaces: None,
    control_plane: ControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
) -> Life:
    """In a namespace, as uid 185, against the real API server: two contexts, then sys.exit(3)."""
    version: str = request.param
    team = f"driver-{version.replace('.', '-')}"

    async def live() -> Life:
        await create_namespace(control_plane.admin, team)
        token = await service_account_with_role(control_plane.admin, team, "spark", RIGHTS)
        with NetworkNamespace.create() as namespace:
            async with (
                capture(namespace) as seen,
                relay(namespace, 0, "127.0.0.1", control_plane.port) as way,
            ):
                life = Life(observer=namespace.observer)
                async with SparkDriver.start(
                    version=version,
                    namespace=namespace,
                    app_id=APPLICATION,
                    uid=SPARK_UID,
                    master=KubernetesMaster(way.port, control_plane.ca_file, token, team),
                    directory=tmp_path_factory.mktemp(team),
                ) as driver:
                    life.trace = driver.trace
                    await driver.ui_bound()
                    life.result = await driver.result()
                    life.rest_id = await driver.rest_id()
                    await driver.stop_context()
                    await driver.ui_closed()
                    await driver.new_context()
                    listing = (await control_plane.admin.request("GET", pods(team))).ok()
                    life.pods = listing["items"]
                    life.exit_code = await driver.exit(3)
                    await driver.ui_closed()
                    life.connections = seen.connections()
        return life

    return asyncio.run(live())


def test_a_driver_has_the_given_id_and_needs_no_executor(cluster_life: Life) -> None:
    assert cluster_life.result == 499500
    assert [context.application for context in cluster_life.trace.contexts] == [APPLICATION, APPLICATION]
    assert cluster_life.rest_id == APPLICATION
    assert cluster_life.pods == []


def test_the_trace_is_in_order_on_one_clock(cluster_life: Life) -> None:
    trace = cluster_life.trace
    first, second = trace.contexts
    assert first.listener is not None
    assert second.listener is not None
    instants = [
        trace.started_at,
        first.listener.seen_at,
        first.ready_at,
        trace.results[0][0],
        first.stop_requested_at,
        first.listener.closed_at,
        second.listener.seen_at,
        second.ready_at,
        second.listener.closed_at,
    ]
    assert None not in instants
    assert instants == sorted(at for at in instants if at is not None)
    assert trace.exited_at is not None
    assert second.ready_at < trace.exited_at


def test_the_jvm_outlives_its_first_context_and_ends_as_the_script_said(cluster_life: Life) -> None:
    first, second = cluster_life.trace.contexts
    assert first.jvm == second.jvm
    assert (cluster_life.exit_code, cluster_life.trace.exit_code) == (3, 3)


def test_listeners_are_told_apart(cluster_life: Life) -> None:
    context = cluster_life.trace.contexts[0]
    ports = [context.port, context.rpc, context.block_manager, context.py4j, context.accumulator]
    listening = {one.socket.port: one.socket for one in cluster_life.trace.listeners.values()}
    found = [listening[port] for port in ports]
    # backlogs as Netty, py4j and socketserver ask for them; Spark gives Jetty one place per acceptor, 8 at most
    assert 1 <= found[0].backlog <= 8
    assert [one.backlog for one in found[1:]] == [4096, 4096, 50, 5]
    assert {one.uid for one in found} == {SPARK_UID}
    assert [one.address for one in found[:1]] == ["::"]
    assert {one.address.removeprefix("::ffff:") for one in found[3:]} == {"127.0.0.1"}


def test_the_harness_touches_the_ui_once_and_nothing_else_of_the_driver(cluster_life: Life) -> None:
    by_us = [one.port for one in cluster_life.connections if one.source == cluster_life.observer]
    assert by_us == [cluster_life.trace.contexts[0].port]


@pytest.fixture(scope="module")
def tls_life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Without namespace and so without root, started by Python as a notebook does, TLS UI; then an exception."""
    folder = tmp_path_factory.mktemp("tls")

    async def live() -> Life:
        life = Life()
        async with SparkDriver.start(
            version="4.1.4",
            launcher="python",
            app_id=APPLICATION,
            conf=write_keystore(folder / "ui.p12"),
            directory=folder,
        ) as driver:
            life.trace = driver.trace
            port = await driver.ui_bound()
            life.rest_id = await driver.rest_id()
            redirectors = _jetty_ports(driver.trace) - {port}
            for scheme, number in [("https", port), *(("http", one) for one in redirectors)]:
                life.pages.append(await fetch(None, number, "/jobs/", scheme=scheme))
            life.result = await driver.result()
            life.exit_code = await driver.throw()
            await driver.ui_closed()
        return life

    return asyncio.run(live())


def _jetty_ports(trace: Trace) -> set[int]:
    return {
        one.socket.port
        for one in trace.listeners.values()
        if one.socket.backlog <= 8 and one.socket.address == "::" and one.seen_at > trace.started_at
    }


def test_tls_ui_serves_on_one_port_and_redirects_to_it_from_another(tls_life: Life) -> None:
    served, redirected = tls_life.pages
    assert tls_life.trace.scheme == "https"
    assert served.status == 200
    assert b"Spark Jobs" in served.body
    assert redirected.status == 302
    assert redirected.headers["location"] == f"https://127.0.0.1:{tls_life.trace.ui_port}/jobs/"


def test_a_local_driver_has_the_given_id_and_runs_tasks(tls_life: Life) -> None:
    assert tls_life.rest_id == tls_life.trace.application == APPLICATION
    assert tls_life.result == 499500


def test_an_exception_of_the_script_ends_the_driver(tls_life: Life) -> None:
    assert tls_life.exit_code == 1
    assert "RuntimeError: thrown by the script" in tls_life.trace.lines()
    assert tls_life.trace.closed_at > tls_life.trace.context.ready_at


@dataclass
class Neighbours:
    """Two drivers in one network namespace that both want port 4040, killed one after the other."""

    first: Trace
    second: Trace
    first_code: int
    second_code: int
    open_meanwhile: bool


@pytest.fixture(scope="module")
def neighbours(needs_namespaces: None) -> Neighbours:
    async def live() -> Neighbours:
        conf = {"spark.ui.port": "4040"}
        with NetworkNamespace.create() as namespace:
            async with SparkDriver.start(version="4.3.0", namespace=namespace, conf=conf) as first:
                await first.ui_bound()
                async with SparkDriver.start(version="3.5.9", namespace=namespace, conf=conf) as second:
                    await second.ui_bound()
                    first.kill(signal.SIGKILL)
                    first_code = await first.exited()
                    await first.ui_closed()
                    listener = second.trace.context.listener
                    still_open = listener is not None and listener.closed_at is None
                    second.kill(signal.SIGTERM)
                    second_code = await second.exited()
                    await second.ui_closed()
                    return Neighbours(first.trace, second.trace, first_code, second_code, still_open)

    return asyncio.run(live())


def test_a_taken_port_moves_the_second_driver_by_one(neighbours: Neighbours) -> None:
    assert (neighbours.first.ui_port, neighbours.second.ui_port) == (4040, 4041)
    assert neighbours.second.application.startswith("local-")


def test_killed_drivers_are_traced_to_their_end(neighbours: Neighbours) -> None:
    assert neighbours.first_code == -signal.SIGKILL
    # a JVM that ends by its own handler of the signal
    assert neighbours.second_code == 128 + signal.SIGTERM
    assert neighbours.open_meanwhile
    assert neighbours.first.closed_at < neighbours.second.closed_at


async def test_a_driver_that_cannot_start_is_told_with_its_log(tmp_path: Path) -> None:
    conf = {"spark.ui.port": "4040", "spark.driver.bindAddress": "192.0.2.1", "spark.port.maxRetries": "0"}
    async with SparkDriver.start(version="3.5.9", conf=conf, directory=tmp_path) as driver:
        with pytest.raises(DriverError) as raised:
            await driver.ui_bound()
        assert await driver.exited() == 1
    assert "Cannot assign requested address" in str(raised.value)
    assert "Cannot assign requested address" in (tmp_path / "driver.log").read_text()


def test_jvm_and_python_die_with_a_killed_harness() -> None:
    harness = """
import asyncio
from sandbox.spark.driver import SparkDriver

async def main():
    async with SparkDriver.start(version="4.1.4") as driver:
        await driver.ui_bound()
        print(driver.trace.context.jvm, driver.trace.context.python, flush=True)
        await driver.exited()

asyncio.run(main())
"""
    command = [sys.executable, "-c", harness]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        process.send_signal(signal.SIGKILL)
    assert len(pids) == 2
    assert survivors(pids, within=30) == set()


@pytest.mark.parametrize(
    ("contexts", "message"),
    [
        ([], "no SparkContext has started"),
        ([Context("spark-1", None, 1, 2, 3, 4, 5, 6, 7)], "spark-1 has no UI"),
    ],
)
def test_shortcuts_before_their_time_say_what_is_missing(contexts: list[Context], message: str) -> None:
    trace = Trace(contexts=contexts)
    with pytest.raises(LookupError, match=message):
        print(trace.ui_port)
