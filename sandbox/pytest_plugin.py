"""Fixtures of the sandbox: name this module in ``pytest_plugins``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.binaries import binaries
from sandbox.control_plane import ControlPlane, started


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """One real control plane for the whole session; keep tests apart by namespaces of their own."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    # a build of minutes must be seen to move
    with capture.global_and_fixture_disabled():
        binaries()
    with started() as plane:
        yield plane
