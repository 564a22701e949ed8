"""Fixtures around drivers and their networks: name this module in ``pytest_plugins``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from sandbox.netns import NamespaceError, NetworkNamespace


@pytest.fixture
def namespace() -> Iterator[NetworkNamespace]:
    """A network namespace of the test's own; the test is skipped where none can be made."""
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(NetworkNamespace.create())
        except NamespaceError as error:
            pytest.skip(str(error))
        yield made
