"""The recorder of Services and slices, and the API server's audit log: complete, in order, on one clock."""

from __future__ import annotations

import contextlib
import time
import uuid

import pytest

from sandbox.apiclient import ApiClient
from sandbox.audit import service_account_user
from sandbox.changes import RecordError, recording
from sandbox.control_plane import ControlPlane
from sandbox.objects import (
    Rule,
    create_namespace,
    create_node,
    create_pod,
    create_service,
    delete_pod,
    service_account_with_role,
    services,
    set_pod_status,
)
from sandbox.standin import StandIn

SELECTOR = {"app": "driver"}
NOWHERE = {"spec": {"selector": {"app": "nobody"}}}
IP = "10.1.0.1"
CLOCKS_APART = 1_000_000  # ns: the log's times are of the wall clock, in microseconds


async def _tell(api: ApiClient, namespace: str) -> None:
    await create_pod(api, namespace, "driver", labels=SELECTOR, ip=IP)
    async with recording(api, namespace) as seen:
        began = time.monotonic_ns()
        await create_service(api, namespace, "ui", selector=SELECTOR, target_port=4041)
        await create_service(api, namespace, "other", selector=SELECTOR, target_port=4042)
        await seen.until_routed("ui", {(IP, 4041)})
        await seen.until_routed("other", {(IP, 4042)})
        (await api.request("PATCH", services(namespace, "ui"), NOWHERE)).ok()
        emptied_at = await seen.until_routed("ui", set())
        (await api.request("DELETE", services(namespace, "ui"))).ok()
        await seen.until(lambda seen: seen.of_service("ui")[-1].type == "DELETED")
        assert seen.leads_to("other") == {(IP, 4042)}
        await set_pod_status(api, namespace, "driver", ready=False)
        await seen.until_routed("other", set())
        assert seen.leads_to("other", ready=False) == {(IP, 4042)}
        await delete_pod(api, namespace, "driver")
        await seen.until_routed("other", set(), ready=False)
    leads = [step.routes for step in seen.routed("ui")]
    assert leads[-2:] == [{(IP, 4041)}, set()]
    assert all(step <= {(IP, 4041)} for step in leads)
    assert seen.leads_to("nothing") == set()
    instants = [began, *(change.at for change in seen.of_service("ui")), time.monotonic_ns()]
    assert instants == sorted(instants)
    assert began < emptied_at < instants[-1]
    assert [change.type for change in seen.of_service("ui")] == ["ADDED", "MODIFIED", "DELETED"]


async def test_a_record_tells_where_each_service_led_on_the_real_server(control_plane: ControlPlane) -> None:
    namespace = f"changes-{uuid.uuid4().hex[:12]}"
    await create_namespace(control_plane.admin, namespace)
    await _tell(control_plane.admin, namespace)


async def test_a_record_tells_where_each_service_led_on_the_stand_in() -> None:
    async with StandIn.start() as stand_in:
        await create_node(stand_in.admin)
        await _tell(stand_in.admin, "default")


async def test_what_does_not_come_is_told_with_what_came_last() -> None:
    async with StandIn.start() as stand_in, recording(stand_in.admin, "default") as seen:
        await create_service(stand_in.admin, "default", "ui", selector=SELECTOR)
        await seen.until(lambda seen: bool(seen.of_service("ui")))
        with pytest.raises(TimeoutError, match="'name': 'ui'"):
            await seen.until_routed("ui", {(IP, 1)}, within=0.05)


async def _outlive_the_server() -> None:
    async with contextlib.AsyncExitStack() as stack:
        stand_in = await stack.enter_async_context(StandIn.start())
        async with recording(stand_in.admin, "default") as seen:
            seen.check()
            await stack.aclose()
            await seen.until(lambda _: False)


async def test_a_record_with_a_gap_is_none() -> None:
    with pytest.raises(RecordError, match=r"the watch of .* has ended"):
        await _outlive_the_server()


async def test_the_audit_log_tells_every_call_of_an_account_and_only_its(
    control_plane: ControlPlane,
) -> None:
    namespace = f"audit-{uuid.uuid4().hex[:12]}"
    await create_namespace(control_plane.admin, namespace)
    rules = [Rule(["services"], ["get", "patch"])]
    token = await service_account_with_role(control_plane.admin, namespace, "one", rules)
    await service_account_with_role(control_plane.admin, namespace, "two", rules)
    one = control_plane.client(token)
    began = time.monotonic_ns()
    path = services(namespace, "ui")
    await one.request("GET", path)
    await create_service(control_plane.admin, namespace, "ui")
    await one.request("PATCH", path, NOWHERE)
    await one.request("PATCH", path, NOWHERE, params={"dryRun": "All"})
    await one.request("DELETE", path)
    ended = time.monotonic_ns()

    told = await control_plane.audit(service_account_user(namespace, "one"))
    since = [call for call in told if call.at >= began - CLOCKS_APART]
    assert [(call.verb, call.resource, call.name, call.code, call.writes) for call in since] == [
        ("get", "services", "ui", 404, False),
        ("patch", "services", "ui", 200, True),
        ("patch", "services", "ui", 200, False),
        ("delete", "services", "ui", 403, True),
    ]
    assert all(call.at < ended + CLOCKS_APART for call in since)
    others = await control_plane.audit(service_account_user(namespace, "two"))
    assert {call.resource for call in others} == {"selfsubjectaccessreviews"}
    assert not any(call.writes for call in others)
