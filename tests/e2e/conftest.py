"""One cluster for the whole session; a namespace of its own for each test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.node.cluster import Cluster, started
from sandbox.node.needs import MissingError, check
from sandbox.node.submit import create_spark_namespace

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of one node; skips with what the machine lacks, which fails in CI."""
    try:
        check()
    except MissingError as error:
        pytest.skip(str(error))
    capture = request.config.pluginmanager.getplugin("capturemanager")
    # builds of minutes must be seen to move
    with capture.global_and_fixture_disabled():
        running = started()
        found = running.__enter__()
    try:
        yield found
    finally:
        running.__exit__(None, None, None)


@pytest.fixture
async def namespace(cluster: Cluster) -> str:
    """A namespace with the ServiceAccount ``spark``."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    await create_spark_namespace(cluster, name)
    return name
