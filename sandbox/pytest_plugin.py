"""Fixtures of the sandbox: name this module in ``pytest_plugins``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.binaries import binaries
from sandbox.control_plane import ControlPlane, started
from sandbox.netns import NamespaceError, NetworkNamespace


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """One real control plane for the whole session; keep tests apart by namespaces of their own."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    # a build of minutes must be seen to move
    with capture.global_and_fixture_disabled():
        binaries()
    with started() as plane:
        yield plane


@pytest.fixture(scope="session")
def needs_namespaces() -> None:
    """Nothing but a skip where no network namespace can be made."""
    try:
        with NetworkNamespace.create():
            pass
    except NamespaceError as error:
        pytest.skip(str(error))


@pytest.fixture
def network(needs_namespaces: None) -> Iterator[NetworkNamespace]:
    """A network of the test's own, as a Pod has it."""
    with NetworkNamespace.create() as made:
        yield made
