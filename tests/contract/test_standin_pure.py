"""The stand-in without a socket: the same rules for tests with a clock of their own."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.standin import Access, Api, DeleteOptions, Request, StatusError, Store
from sandbox.standin.patches import merge
from sandbox.standin.resources import ENDPOINT_SLICES, NAMESPACES, NODES, PODS, SERVICES, Object
from sandbox.standin.store import EPOCH

MERGE_PATCH = "application/merge-patch+json"


def store_with_route() -> Store:
    """Return a store in which the Service ``ui`` routes to one Pod."""
    store = Store()
    store.create(NODES, "", {"metadata": {"name": "node1"}})
    pod = {
        "metadata": {"name": "driver", "labels": {"app": "x"}},
        "spec": {"nodeName": "node1", "containers": [{"name": "main", "image": "none"}]},
    }
    store.create(PODS, "default", pod)
    status = {
        "phase": "Running",
        "podIP": "10.1.0.1",
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    store.update(PODS, "default", "driver", lambda old: old | {"status": status}, subresource="status")
    spec = {"selector": {"app": "x"}, "ports": [{"port": 4040}]}
    store.create(SERVICES, "default", {"metadata": {"name": "ui"}, "spec": spec})
    store.settle()
    return store


def endpoints(store: Store) -> list[Object] | None:
    """Return the endpoints of the only slice."""
    [found] = store.list(ENDPOINT_SLICES, "default")
    held: list[Object] | None = found["endpoints"]
    return held


def park(old: Object) -> Object:
    """Return the Service with a selector that matches nothing."""
    return old | {"spec": old["spec"] | {"selector": {"parked": "yes"}}}


def test_controllers_follow_only_when_they_are_told_to() -> None:
    store = store_with_route()
    assert endpoints(store) is not None
    store.update(SERVICES, "default", "ui", park)
    assert endpoints(store) is not None
    store.settle()
    assert endpoints(store) is None


def test_settling_twice_changes_nothing() -> None:
    store = store_with_route()
    revision = store.ledger.revision
    store.settle()
    assert store.ledger.revision == revision


def test_time_and_uids_are_the_same_each_time() -> None:
    one, other = store_with_route(), store_with_route()
    assert one.ledger.everything() == other.ledger.everything()
    namespace = Store(now=lambda: EPOCH).get(NAMESPACES, "", "default")
    assert namespace["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


def test_what_is_handed_out_can_be_changed_freely() -> None:
    store = store_with_route()
    taken = store.get(SERVICES, "default", "ui")
    taken["spec"]["selector"]["app"] = "changed"
    given: Object = {
        "metadata": {"name": "other"},
        "spec": {"ports": [{"port": 1}], "selector": {"app": "x"}},
    }
    store.create(SERVICES, "default", given)["spec"]["selector"]["app"] = "changed here"
    given["spec"]["selector"]["app"] = "changed"
    for name in ("ui", "other"):
        assert store.get(SERVICES, "default", name)["spec"]["selector"] == {"app": "x"}


def test_a_deleted_object_made_anew_is_another() -> None:
    store = store_with_route()
    old = store.get(SERVICES, "default", "ui")
    store.delete(SERVICES, "default", "ui")
    store.create(SERVICES, "default", {"metadata": {"name": "ui"}, "spec": {"ports": [{"port": 1}]}})
    with pytest.raises(StatusError) as refused:
        store.delete(SERVICES, "default", "ui", DeleteOptions(uid=old["metadata"]["uid"]))
    assert refused.value.code == 409


def test_the_api_answers_without_a_socket() -> None:
    store = store_with_route()
    access = Access(store.ledger)
    api = Api(store, access)
    path = "/api/v1/namespaces/default/services/ui"
    body = json.dumps({"spec": {"selector": None}}).encode()
    anonymous = api.handle(Request("PATCH", path, body=body, content_type=MERGE_PATCH))
    assert anonymous.status == 403
    admin = api.handle(Request("PATCH", path, body=body, content_type=MERGE_PATCH, token=access.admin_token))
    assert admin.status == 200
    assert "selector" not in store.get(SERVICES, "default", "ui")["spec"]


def test_a_watch_is_asked_for_its_events() -> None:
    store = store_with_route()
    access = Access(store.ledger)
    api = Api(store, access)
    request = Request(
        "GET", "/api/v1/namespaces/default/services", {"watch": "true"}, token=access.admin_token
    )
    watch = api.watch(request)
    assert [event["type"] for event in watch.take()] == ["ADDED"]
    assert watch.take() == []
    store.update(SERVICES, "default", "ui", park)
    assert [event["type"] for event in watch.take()] == ["MODIFIED"]


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_keeps_to_rfc_7386(target: object, patch: object, result: object) -> None:
    assert merge(target, patch) == result


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(json_values, json_values)
def test_a_merge_patch_applied_twice_is_applied_once(target: object, patch: object) -> None:
    once = merge(target, patch)
    assert merge(once, patch) == once
