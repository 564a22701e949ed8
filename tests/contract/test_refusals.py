"""What the API server refuses, and in what words: the agent shows them to its users."""

from __future__ import annotations

import pytest

from sandbox.apiclient import ApiClient, Object
from sandbox.objects import create_service, services
from tests.contract.objects import UI, get_service, patch_service, service_body

RANGE = "must be between 1 and 65535, inclusive"
PORT = {"name": "spark-ui", "port": 4040}


@pytest.fixture
async def service(api: ApiClient, namespace: str) -> Object:
    """A Service called ``ui`` with one port."""
    return await create_service(api, namespace, "ui", selector=UI)


@pytest.mark.parametrize("target", [0, "", None], ids=["0", "empty", "null"])
@pytest.mark.usefixtures("service")
async def test_an_empty_target_port_becomes_the_port(api: ApiClient, namespace: str, target: object) -> None:
    await patch_service(api, namespace, "ui", {"spec": {"ports": [{**PORT, "targetPort": 4041}]}})
    answer = await patch_service(api, namespace, "ui", {"spec": {"ports": [{**PORT, "targetPort": target}]}})
    assert answer.status == 200
    assert answer.body["spec"]["ports"][0]["targetPort"] == 4040


@pytest.mark.parametrize(
    ("ports", "message"),
    [
        (
            [{**PORT, "targetPort": "4040"}],
            'spec.ports[0].targetPort: Invalid value: "4040": must contain at least one letter (a-z)',
        ),
        ([{**PORT, "targetPort": -1}], f"spec.ports[0].targetPort: Invalid value: -1: {RANGE}"),
        ([{**PORT, "targetPort": 65536}], f"spec.ports[0].targetPort: Invalid value: 65536: {RANGE}"),
        (
            [{**PORT, "targetPort": "sixteen-lettersx"}],
            'spec.ports[0].targetPort: Invalid value: "sixteen-lettersx": must be no more than 15 characters',
        ),
        (
            [{**PORT, "targetPort": "sixteen-letters-"}],
            '[spec.ports[0].targetPort: Invalid value: "sixteen-letters-": must be no more than 15 characters, '
            'spec.ports[0].targetPort: Invalid value: "sixteen-letters-": must not begin or end with a hyphen]',
        ),
        ([{**PORT, "port": 0, "targetPort": 1}], f"spec.ports[0].port: Invalid value: 0: {RANGE}"),
        ([{"targetPort": 4041}], f"spec.ports[0].port: Invalid value: 0: {RANGE}"),
        ([PORT, {"port": 4041}], "spec.ports[1].name: Required value"),
        ([PORT, {**PORT, "port": 4041}], 'spec.ports[1].name: Duplicate value: "spark-ui"'),
        (
            [{**PORT, "nodePort": 30000}],
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            [{**PORT, "protocol": "X"}],
            'spec.ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
        ),
        (
            [{**PORT, "name": "n" * 64}],
            f'spec.ports[0].name: Invalid value: "{"n" * 64}": must be no more than 63 characters',
        ),
        ([], "spec.ports: Required value"),
        (None, "spec.ports: Required value"),
    ],
)
@pytest.mark.usefixtures("service")
async def test_ports_are_judged(api: ApiClient, namespace: str, ports: object, message: str) -> None:
    before = await get_service(api, namespace)
    answer = await patch_service(api, namespace, "ui", {"spec": {"ports": ports}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["message"] == f'Service "ui" is invalid: {message}'
    assert await get_service(api, namespace) == before


@pytest.mark.usefixtures("service")
async def test_several_faults_are_told_at_once(api: ApiClient, namespace: str) -> None:
    answer = await patch_service(api, namespace, "ui", {"spec": {"ports": [{"port": 0}]}})
    both = (
        f"spec.ports[0].port: Invalid value: 0: {RANGE}, spec.ports[0].targetPort: Invalid value: 0: {RANGE}"
    )
    assert answer.body["message"] == f'Service "ui" is invalid: [{both}]'
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == [
        "spec.ports[0].port",
        "spec.ports[0].targetPort",
    ]


@pytest.mark.parametrize("protocol", ["UDP", "SCTP"])
@pytest.mark.usefixtures("service")
async def test_one_number_may_stand_once_per_protocol(api: ApiClient, namespace: str, protocol: str) -> None:
    twice = [PORT, {"name": "other", "port": 4040, "protocol": protocol}]
    assert (await patch_service(api, namespace, "ui", {"spec": {"ports": twice}})).status == 200
    twice[1] = {"name": "other", "port": 4040}
    answer = await patch_service(api, namespace, "ui", {"spec": {"ports": twice}})
    assert answer.status == 422
    assert answer.body["details"]["causes"][0]["field"] == "spec.ports[1]"


@pytest.mark.usefixtures("service")
async def test_a_selector_value_of_another_type_is_told_with_the_whole_object(
    api: ApiClient, namespace: str
) -> None:
    await patch_service(api, namespace, "ui", {"metadata": {"annotations": {"private": "hunter2"}}})
    answer = await patch_service(api, namespace, "ui", {"spec": {"selector": {"a": 5}}})
    assert answer.status == 422
    assert answer.body["message"].startswith(' "" is invalid: patch: Invalid value: ')
    assert "json: cannot unmarshal number into Go struct field" in answer.body["message"]
    assert "hunter2" in answer.body["message"]


async def test_the_same_in_a_post_is_a_bad_request(api: ApiClient, namespace: str) -> None:
    body = service_body()
    body["spec"]["selector"] = {"a": 5}
    answer = await api.request("POST", services(namespace), body)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert "json: cannot unmarshal number into Go struct field" in answer.body["message"]


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ({"a": "x" * 64}, "must be no more than 63 bytes"),
        ({"a": "-"}, "a valid label must be an empty string"),
    ],
    ids=["long", "dash"],
)
@pytest.mark.usefixtures("service")
async def test_selectors_are_judged(api: ApiClient, namespace: str, selector: Object, words: str) -> None:
    answer = await patch_service(api, namespace, "ui", {"spec": {"selector": selector}})
    assert answer.status == 422
    assert answer.body["details"]["causes"][0]["field"] == "spec.selector"
    assert words in answer.body["message"]


@pytest.mark.usefixtures("service")
async def test_unknown_fields_are_ignored_unless_strict(api: ApiClient, namespace: str) -> None:
    patch = {"spec": {"unheardOf": 1, "ports": [{**PORT, "unheardOf": 1}]}}
    ignored = await patch_service(api, namespace, "ui", patch)
    assert "unheardOf" not in ignored.ok()["spec"]
    strict = await patch_service(api, namespace, "ui", patch, fieldValidation="Strict")
    assert strict.status == 422
    assert strict.body["message"].endswith(
        'strict decoding error: unknown field "spec.ports[0].unheardOf", unknown field "spec.unheardOf"'
    ) or strict.body["message"].endswith(
        'strict decoding error: unknown field "spec.unheardOf", unknown field "spec.ports[0].unheardOf"'
    )


@pytest.mark.parametrize(("validation", "warned"), [("", True), ("Warn", True), ("Ignore", False)])
@pytest.mark.usefixtures("service")
async def test_an_ignored_field_is_warned_of(
    api: ApiClient, namespace: str, validation: str, *, warned: bool
) -> None:
    patch = {"spec": {"unheardOf": 1}}
    answer = await patch_service(api, namespace, "ui", patch, fieldValidation=validation)
    assert answer.status == 200
    expected = '299 - "unknown field \\"spec.unheardOf\\""' if warned else None
    assert answer.headers.get("Warning") == expected


@pytest.mark.usefixtures("service")
async def test_a_null_for_an_unknown_field_passes_even_strict(api: ApiClient, namespace: str) -> None:
    patch = {"spec": {"unheardOf": None}}
    assert (await patch_service(api, namespace, "ui", patch, fieldValidation="Strict")).status == 200


@pytest.mark.usefixtures("service")
async def test_a_patch_of_another_name_or_namespace_is_a_bad_request(api: ApiClient, namespace: str) -> None:
    for key in ("name", "namespace"):
        answer = await patch_service(api, namespace, "ui", {"metadata": {key: "another"}})
        assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


@pytest.mark.usefixtures("service")
async def test_what_the_server_gave_cannot_be_changed(api: ApiClient, namespace: str) -> None:
    before = await get_service(api, namespace)
    patch = {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}, "status": {"loadBalancer": None}}
    assert (await patch_service(api, namespace, "ui", patch)).ok() == before
    answer = await patch_service(
        api, namespace, "ui", {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}
    )
    assert answer.status == 422
    assert "metadata.deletionTimestamp: Invalid value" in answer.body["message"]
    assert "field is immutable" in answer.body["message"]


async def test_a_strict_post_knows_no_null_either(api: ApiClient, namespace: str) -> None:
    body = service_body()
    body["spec"]["unheardOf"] = None
    answer = await api.request("POST", services(namespace), body, params={"fieldValidation": "Strict"})
    assert answer.status == 400


async def test_a_strict_post_of_an_unknown_field_is_a_bad_request(api: ApiClient, namespace: str) -> None:
    body = service_body()
    body["spec"]["unheardOf"] = 1
    answer = await api.request("POST", services(namespace), body, params={"fieldValidation": "Strict"})
    assert answer.status == 400
    assert answer.body["message"] == (
        'Service in version "v1" cannot be handled as a Service: strict decoding error: unknown field '
        '"spec.unheardOf"'
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [("dryRun", "some"), ("fieldValidation", "Lenient")],
    ids=["dryRun", "fieldValidation"],
)
@pytest.mark.usefixtures("service")
async def test_options_are_judged(api: ApiClient, namespace: str, option: str, value: str) -> None:
    answer = await patch_service(api, namespace, "ui", {}, **{option: value})
    assert answer.status == 422
    assert answer.body["message"].startswith(
        f'PatchOptions.meta.k8s.io "" is invalid: {option}: Unsupported value'
    )


async def test_a_post_of_another_content_type_is_refused(api: ApiClient, namespace: str) -> None:
    answer = await api.request("POST", services(namespace), service_body(), content_type="text/plain")
    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "application/merge-patch+jsonx"])
@pytest.mark.usefixtures("service")
async def test_another_content_type_is_refused(api: ApiClient, namespace: str, content_type: str) -> None:
    answer = await api.request("PATCH", services(namespace, "ui"), {}, content_type=content_type)
    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize("body", [b"{", b"[]"], ids=["broken", "list"])
@pytest.mark.usefixtures("service")
async def test_a_patch_that_is_no_object_is_a_bad_request(
    api: ApiClient, namespace: str, body: bytes
) -> None:
    answer = await api.request("PATCH", services(namespace, "ui"), body)
    assert answer.status == 400
    assert answer.body["message"].startswith("error decoding patch: ")


@pytest.mark.usefixtures("service")
async def test_a_name_that_is_taken_already_exists(api: ApiClient, namespace: str) -> None:
    answer = await api.request("POST", services(namespace), service_body())
    assert (answer.status, answer.body["reason"]) == (409, "AlreadyExists")
    assert answer.body["message"] == 'services "ui" already exists'


@pytest.mark.usefixtures("service")
async def test_a_bad_body_is_told_before_a_taken_name(api: ApiClient, namespace: str) -> None:
    body = service_body()
    body["spec"]["ports"][0]["port"] = 0
    assert (await api.request("POST", services(namespace), body)).status == 422


async def test_a_missing_namespace_is_not_found(api: ApiClient) -> None:
    answer = await api.request("POST", services("nowhere"), service_body())
    assert (answer.status, answer.body["reason"]) == (404, "NotFound")
    assert answer.body["details"] == {"name": "nowhere", "kind": "namespaces"}


async def test_a_missing_service_is_not_found(api: ApiClient, namespace: str) -> None:
    for method in ("GET", "PATCH", "DELETE"):
        answer = await api.request(method, services(namespace, "ui"), {} if method == "PATCH" else None)
        assert (answer.status, answer.body["message"]) == (404, 'services "ui" not found')


@pytest.mark.parametrize(
    ("name", "status"),
    [("a" * 63, 201), ("a" * 64, 422), ("a.b", 422), ("A", 422), ("1a", 201)],
    ids=["63", "64", "dot", "capital", "digit"],
)
async def test_names_are_judged(api: ApiClient, namespace: str, name: str, status: int) -> None:
    assert (await api.request("POST", services(namespace), service_body(name))).status == status


async def test_a_delete_can_ask_for_uid_and_version(api: ApiClient, namespace: str, service: Object) -> None:
    for preconditions in ({"uid": "another"}, {"resourceVersion": "1"}):
        answer = await api.request("DELETE", services(namespace, "ui"), {"preconditions": preconditions})
        assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    own = {"uid": service["metadata"]["uid"], "resourceVersion": service["metadata"]["resourceVersion"]}
    assert (await api.request("DELETE", services(namespace, "ui"), {"preconditions": own})).status == 200
    assert (await api.request("GET", services(namespace, "ui"))).status == 404
