"""The two servers that every contract test runs against: the stand-in, and the real kube-apiserver.

What a test here says is true of Kubernetes 1.36. Where the stand-in answers otherwise, the stand-in is wrong.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from sandbox.apiclient import Access, ApiClient
from sandbox.control_plane import ControlPlane
from sandbox.objects import create_namespace, create_node
from sandbox.standin import StandIn


@pytest.fixture(params=["standin", pytest.param("real", marks=pytest.mark.real)])
def plane(request: pytest.FixtureRequest) -> ControlPlane | None:
    """The real control plane, or None for the stand-in."""
    if request.param == "standin":
        return None
    found = request.getfixturevalue("control_plane")
    assert isinstance(found, ControlPlane)
    return found


@pytest.fixture
async def api(plane: ControlPlane | None) -> AsyncIterator[ApiClient]:
    """A client with every right, on connections of its own."""
    if plane is not None:
        async with plane.client() as client:
            yield client
        return
    async with StandIn.start() as standin, ApiClient(standin.admin.access) as client:
        await create_node(client)
        yield client


@pytest.fixture
async def anonymous(api: ApiClient) -> ApiClient:
    """A client of the same server that says nothing about who it is."""
    return ApiClient(Access(api.access.url, api.access.ca_file))


@pytest.fixture
async def namespace(api: ApiClient) -> str:
    """A namespace of the test's own."""
    name = f"contract-{uuid.uuid4().hex[:12]}"
    await create_namespace(api, name)
    return name
