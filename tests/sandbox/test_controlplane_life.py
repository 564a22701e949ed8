"""The sandbox's control plane ends wholly, however it ends, and two of them do not meet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from sandbox.control_plane import ControlPlane, started
from sandbox.objects import create_namespace
from tests.sandbox.processes import children, survivors

ROOT = Path(__file__).parent.parent.parent
COMPONENTS = {"etcd", "kube-apiserver", "kube-controller"}
# runs a control plane as a test would, tells its process and folder, and stays
LAUNCHER = """
import sys, time
from sandbox.control_plane import started
with started() as plane:
    print(plane.pid, plane.layout.folder, flush=True)
    time.sleep(120)
"""


def first_line(process: subprocess.Popen[str]) -> str:
    """Return the first line that a process says; the empty string when it ends without one."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


async def test_two_at_once_do_not_meet(control_plane: ControlPlane) -> None:
    async with ControlPlane.start(["192.0.2.10"]) as other:
        await create_namespace(other.admin, "only-here")
        here = await other.admin.request("GET", "/api/v1/namespaces/only-here")
        there = await control_plane.admin.request("GET", "/api/v1/namespaces/only-here")
        certificate = x509.load_pem_x509_certificate((other.layout.pki / "apiserver.crt").read_bytes())
        processes = children(other.pid)
        folder = other.layout.folder

    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = set(map(str, names.get_values_for_type(x509.IPAddress)))
    assert other.port != control_plane.port
    assert (here.status, there.status) == (200, 404)
    assert addresses == {"127.0.0.1", "10.96.0.1", "192.0.2.10"}
    assert set(processes) == COMPONENTS
    assert survivors(list(processes.values())) == set()
    assert not folder.exists()


def test_nothing_is_left_of_a_launcher_that_was_killed() -> None:
    command = [sys.executable, "-c", LAUNCHER]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as launcher:
        try:
            pid, folder = first_line(launcher).split()
            processes = [int(pid), *children(int(pid)).values()]
        finally:
            launcher.kill()

    assert len(processes) == 1 + len(COMPONENTS)
    assert survivors(processes) == set()
    assert not Path(folder).exists()


def test_nothing_is_left_of_a_supervisor_that_was_killed() -> None:
    with started() as plane:
        processes = children(plane.pid)
        os.kill(plane.pid, signal.SIGKILL)
        alive = survivors([plane.pid, *processes.values()])
        left = plane.layout.folder
        with started() as following:
            assert following.layout.folder != left
            swept = not left.exists()

    assert set(processes) == COMPONENTS
    assert alive == set()
    assert swept


def test_a_component_that_ends_takes_the_rest_along(capfd: pytest.CaptureFixture[str]) -> None:
    with started() as plane:
        processes = children(plane.pid)
        os.kill(processes["etcd"], signal.SIGKILL)
        alive = survivors([plane.pid, *processes.values()])

    assert alive == set()
    assert not plane.layout.folder.exists()
    assert "etcd ended with -9" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("send", "number"), [(os.kill, signal.SIGTERM), (os.killpg, signal.SIGINT)], ids=["sigterm", "ctrl-c"]
)
def test_the_command_ends_when_it_is_asked(send: Callable[[int, int], None], number: int) -> None:
    command = [sys.executable, "-m", "sandbox.cluster"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, process_group=0) as process:
        try:
            name, value = first_line(process).split("=")
            folder = Path(value).parent
            processes = children(process.pid)
            send(process.pid, number)
            status = process.wait(30)
        finally:
            process.kill()

    assert name == "KUBECONFIG"
    assert status == 0
    assert len(processes) == len(COMPONENTS)
    assert survivors(list(processes.values())) == set()
    assert not folder.exists()
