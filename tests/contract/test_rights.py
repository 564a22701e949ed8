"""Rights: who is asked who they are, what a Role's names cover, and how a refusal reads."""

from __future__ import annotations

import uuid

import pytest

from sandbox.apiclient import ApiClient, ApiError, Object
from sandbox.objects import Rule, endpoint_slices, service_account_with_role, services
from tests.contract.objects import service_body

REVIEWS = "/apis/authorization.k8s.io/v1"
NAMED = {"fieldSelector": "metadata.name=ui"}


@pytest.fixture
async def token(api: ApiClient, namespace: str) -> str:
    """The token of an account with rights on the Service ``ui`` alone, which exists beside another."""
    for name in ("ui", "other"):
        (await api.request("POST", services(namespace), service_body(name))).ok()
    rules = [
        Rule(["services"], ["create"], names=["ui"]),
        Rule(["services"], ["get", "patch", "list", "watch"], names=["ui", "missing"]),
        Rule(["endpointslices"], ["list"], "discovery.k8s.io"),
    ]
    return await service_account_with_role(api, namespace, "agent", rules)


def refusal(namespace: str, verb: str, name: str = "") -> Object:
    """Return the body of the 403 for the account of `token`."""
    subject = f'services "{name}"' if name else "services"
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": (
            f'{subject} is forbidden: User "system:serviceaccount:{namespace}:agent" cannot {verb} resource '
            f'"services" in API group "" in the namespace "{namespace}"'
        ),
        "reason": "Forbidden",
        "details": {**({"name": name} if name else {}), "kind": "services"},
        "code": 403,
    }


async def test_names_limit_get_and_patch(api: ApiClient, namespace: str, token: str) -> None:
    assert (await api.request("GET", services(namespace, "ui"), token=token)).status == 200
    assert (await api.request("PATCH", services(namespace, "ui"), {}, token=token)).status == 200
    get = await api.request("GET", services(namespace, "other"), token=token)
    assert (get.status, get.body) == (403, refusal(namespace, "get", "other"))
    patch = await api.request("PATCH", services(namespace, "other"), {}, token=token)
    assert (patch.status, patch.body) == (403, refusal(namespace, "patch", "other"))


async def test_a_missing_service_is_not_found_only_where_its_name_is_allowed(
    api: ApiClient, namespace: str, token: str
) -> None:
    allowed = await api.request("GET", services(namespace, "missing"), token=token)
    assert (allowed.status, allowed.body["reason"]) == (404, "NotFound")
    other = await api.request("GET", services(namespace, "missing-too"), token=token)
    assert (other.status, other.body) == (403, refusal(namespace, "get", "missing-too"))


async def test_create_cannot_be_limited_by_name(api: ApiClient, namespace: str, token: str) -> None:
    answer = await api.request("POST", services(namespace), service_body("ui"), token=token)
    assert (answer.status, answer.body) == (403, refusal(namespace, "create"))


async def test_list_is_allowed_by_name_only_with_a_field_selector(
    api: ApiClient, namespace: str, token: str
) -> None:
    named = await api.request("GET", services(namespace), params=NAMED, token=token)
    assert [item["metadata"]["name"] for item in named.ok()["items"]] == ["ui"]
    everything = await api.request("GET", services(namespace), token=token)
    assert (everything.status, everything.body) == (403, refusal(namespace, "list"))
    other = {"fieldSelector": "metadata.name=other"}
    others = await api.request("GET", services(namespace), params=other, token=token)
    assert (others.status, others.body) == (403, refusal(namespace, "list", "other"))


async def test_watch_is_allowed_by_name_only_with_a_field_selector(
    api: ApiClient, namespace: str, token: str
) -> None:
    async with api.watch(services(namespace), NAMED, token=token) as events:
        first = await anext(events)
        assert (first.type, first.object["metadata"]["name"]) == ("ADDED", "ui")
    with pytest.raises(ApiError) as refused:
        async with api.watch(services(namespace), token=token):
            pass
    assert refused.value.response.body == refusal(namespace, "watch")


async def test_what_no_rule_names_is_forbidden(api: ApiClient, namespace: str, token: str) -> None:
    delete = await api.request("DELETE", services(namespace, "ui"), token=token)
    assert (delete.status, delete.body) == (403, refusal(namespace, "delete", "ui"))
    status = await api.request("PATCH", services(namespace, "ui") + "/status", {}, token=token)
    assert status.status == 403
    assert 'cannot patch resource "services/status"' in status.body["message"]
    assert (await api.request("GET", services("default", "ui"), token=token)).status == 403


async def test_slices_are_listed_but_not_read_one_by_one(api: ApiClient, namespace: str, token: str) -> None:
    assert (await api.request("GET", endpoint_slices(namespace), token=token)).status == 200
    one = await api.request("GET", endpoint_slices(namespace, "ui-12345"), token=token)
    assert one.status == 403
    assert one.body["details"] == {"name": "ui-12345", "group": "discovery.k8s.io", "kind": "endpointslices"}


async def test_rights_are_asked_before_the_content_type(api: ApiClient, namespace: str, token: str) -> None:
    answer = await api.request(
        "PATCH", services(namespace, "other"), {}, content_type="text/plain", token=token
    )
    assert answer.status == 403


async def test_nobody_in_particular_is_forbidden(anonymous: ApiClient, namespace: str) -> None:
    answer = await anonymous.request("GET", services(namespace, "ui"))
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert 'User "system:anonymous" cannot get resource "services"' in answer.body["message"]
    for path in ("/readyz", "/version"):
        assert (await anonymous.request("GET", path)).status == 200


async def test_a_bad_token_is_unauthorized(anonymous: ApiClient, namespace: str) -> None:
    answer = await anonymous.request("GET", services(namespace, "ui"), token=uuid.uuid4().hex)
    assert answer.status == 401
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


@pytest.mark.parametrize(
    ("attributes", "allowed"),
    [
        ({"verb": "get", "name": "ui"}, True),
        ({"verb": "get", "name": "other"}, False),
        ({"verb": "get"}, False),
        ({"verb": "create"}, False),
        ({"verb": "patch", "name": "ui", "subresource": "status"}, False),
        ({"verb": "list", "resource": "endpointslices", "group": "discovery.k8s.io"}, True),
        ({"verb": "get", "name": "ui", "namespace": "default"}, False),
    ],
)
async def test_an_account_can_ask_what_it_may_do(
    api: ApiClient, namespace: str, token: str, attributes: Object, *, allowed: bool
) -> None:
    spec = {"resourceAttributes": {"namespace": namespace, "resource": "services", **attributes}}
    answer = await api.request("POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec}, token=token)
    assert (answer.status, answer.body["status"]["allowed"]) == (201, allowed)


async def test_an_account_can_ask_for_all_its_rules(api: ApiClient, namespace: str, token: str) -> None:
    body = {"spec": {"namespace": namespace}}
    answer = await api.request("POST", f"{REVIEWS}/selfsubjectrulesreviews", body, token=token)
    rules = answer.ok()["status"]["resourceRules"]
    assert {"verbs": ["list"], "apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"]} in rules
    assert {
        "verbs": ["create"],
        "apiGroups": [""],
        "resources": ["services"],
        "resourceNames": ["ui"],
    } in rules


async def test_nobody_in_particular_may_not_even_ask(anonymous: ApiClient, namespace: str) -> None:
    spec = {"resourceAttributes": {"namespace": namespace, "verb": "get", "resource": "services"}}
    answer = await anonymous.request("POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec})
    assert answer.status == 403


async def test_a_token_of_no_account_is_not_found(api: ApiClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/nobody/token"
    assert (await api.request("POST", path, {"spec": {}})).status == 404
