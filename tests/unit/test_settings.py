"""Every row of the settings: good values, bad values, and what the messages say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.settings import (
    PREFIX,
    TABLE,
    Settings,
    SettingsError,
    control_socket,
    load,
    operators_service_name,
    service_name,
    split_address,
)
from agent.settings.values import service as service_parser
from tests.unit.telling import ENV, made

DEFAULTS: Mapping[str, object] = {
    "service": "etl-ui",
    "service_given": False,
    "service_labels": {},
    "create": True,
    "create_labels": {"app.kubernetes.io/managed-by": "spark-ui-agent"},
    "create_annotations": {},
    "adopt": "own",
    "service_type": "ClusterIP",
    "expose": 4040,
    "port_name": "spark-ui",
    "selector": {},
    "scheme": "auto",
    "filtered_ui": "refuse",
    "contexts": "newest",
    "driver_container": "spark-kubernetes-driver",
    "driver_uid": 185,
    "dir": Path("/run/spark-ui-agent"),
    "driver_conf_dir": None,
    "hook": "auto",
    "hook_timeout": 2.0,
    "guard": "auto",
    "settle": 2.0,
    "health_address": "auto",
    "mode": "native",
    "token_file": Path("/var/run/secrets/kubernetes.io/serviceaccount/token"),
    "ca_file": Path("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"),
    "api_url": "https://10.96.0.1:443",
    "log_level": "info",
    "log_format": "auto",
    "warnings": (),
}

GOOD: list[tuple[str, str, str, object]] = [
    ("SERVICE", "team-ui", "service", "team-ui"),
    ("SERVICE", "team-ui", "service_given", True),
    ("SERVICE", "  team-ui ", "service", "team-ui"),
    ("SERVICE_LABELS", "app=etl,example.org/tier=ui", "service_labels", {"app": "etl", "example.org/tier": "ui"}),
    ("SERVICE_LABELS", "app=", "service_labels", {"app": ""}),
    ("CREATE", "False", "create", False),
    ("CREATE_LABELS", "a=b,", "create_labels", {"a": "b"}),
    ("CREATE_ANNOTATIONS", r"example.org/tags=a=b\,c=d , x=y", "create_annotations",
     {"example.org/tags": "a=b,c=d", "x": "y"}),
    ("ADOPT", "any", "adopt", "any"),
    ("SERVICE_TYPE", "LoadBalancer", "service_type", "LoadBalancer"),
    ("EXPOSE", "80", "expose", 80),
    ("EXPOSE", "65535", "expose", 65535),
    ("PORT_NAME", "http-ui", "port_name", "http-ui"),
    ("SELECTOR", "uid-tag=drv-1", "selector", {"uid-tag": "drv-1"}),
    ("SCHEME", "https", "scheme", "https"),
    ("FILTERED_UI", "socket", "filtered_ui", "socket"),
    ("CONTEXTS", "only", "contexts", "only"),
    ("DRIVER_CONTAINER", "driver", "driver_container", "driver"),
    ("DRIVER_UID", "0", "driver_uid", 0),
    ("DRIVER_UID", "1000680000", "driver_uid", 1000680000),
    ("DIR", "/dev/shm/ui", "dir", Path("/dev/shm/ui")),
    ("DIR", "/dev/shm/ui", "control_socket", Path("/dev/shm/ui/agent.sock")),
    ("DRIVER_CONF_DIR", "/opt/spark/conf", "driver_conf_dir", Path("/opt/spark/conf")),
    ("DRIVER_CONF_DIR", "/opt/spark/conf", "hook_wanted", True),
    ("HOOK", "on", "hook_wanted", True),
    ("HOOK", "off", "hook_wanted", False),
    ("HOOK_TIMEOUT", "500ms", "hook_timeout", 0.5),
    ("HOOK_TIMEOUT", "0.5m", "hook_timeout", 30.0),
    ("GUARD", "off", "guard", "off"),
    ("SETTLE", "0", "settle", 0.0),
    ("HEALTH_ADDRESS", "127.0.0.1:0", "health_address", "127.0.0.1:0"),
    ("HEALTH_ADDRESS", "[::1]:4900", "health_address", "[::1]:4900"),
    ("HEALTH_ADDRESS", "off", "health_address", "off"),
    ("MODE", "plain", "mode", "plain"),
    ("TOKEN_FILE", "/t/token", "token_file", Path("/t/token")),
    ("CA_FILE", "/t/ca", "ca_file", Path("/t/ca")),
    ("LOG_LEVEL", "debug", "log_level", "debug"),
    ("LOG_FORMAT", "json", "log_format", "json"),
]  # fmt: skip

BAD: list[tuple[str, str, str]] = [
    ("SERVICE", "Team_ui", "a Service name"),
    ("SERVICE", "1ui", "beginning with a letter"),
    ("SERVICE", "a" * 64, "at most 63"),
    ("SERVICE", "ui-", "a Service name"),
    ("SERVICE_LABELS", "app", "not 'app'"),
    ("SERVICE_LABELS", "a=b,a=c", "each key once"),
    ("SERVICE_LABELS", "a=" + "b" * 64, "labels"),
    ("SERVICE_LABELS", "a=-b", "labels"),
    ("CREATE", "yes", "true or false"),
    ("CREATE_LABELS", "/a=b", "labels"),
    ("CREATE_ANNOTATIONS", "a b=c", "annotations"),
    ("ADOPT", "all", "one of own, any"),
    ("SERVICE_TYPE", "ExternalName", "one of ClusterIP, NodePort, LoadBalancer"),
    ("EXPOSE", "0", "1 to 65535"),
    ("EXPOSE", "65536", "1 to 65535"),
    ("EXPOSE", "4040.0", "1 to 65535"),
    ("EXPOSE", "٤٠٤٠", "1 to 65535"),
    ("EXPOSE", "9" * 5000, "1 to 65535"),
    ("PORT_NAME", "UI", "a port name"),
    ("SELECTOR", "=x", "labels"),
    ("SCHEME", "gopher", "one of auto, http, https"),
    ("FILTERED_UI", "yes", "one of refuse, socket"),
    ("CONTEXTS", "last", "one of newest, first, only"),
    ("DRIVER_CONTAINER", "Driver", "a container name"),
    ("DRIVER_UID", "spark", "a numeric user id"),
    ("DRIVER_UID", "4294967295", "a numeric user id"),
    ("DIR", "run", "an absolute path"),
    ("DRIVER_CONF_DIR", "./conf", "an absolute path"),
    ("HOOK", "true", "one of auto, on, off"),
    ("HOOK_TIMEOUT", "2h", "from 0.1s to 30s"),
    ("HOOK_TIMEOUT", "31s", "from 0.1s to 30s"),
    ("HOOK_TIMEOUT", "-1s", "from 0.1s to 30s"),
    ("GUARD", "on", "one of auto, off"),
    ("SETTLE", "61s", "from 0s to 60s"),
    ("HEALTH_ADDRESS", "localhost:4900", "IP:port"),
    ("HEALTH_ADDRESS", "::1:4900", "[IPv6]:port"),
    ("HEALTH_ADDRESS", "127.0.0.1", "IP:port"),
    ("HEALTH_ADDRESS", "127.0.0.1:65536", "IP:port"),
    ("MODE", "sidecar", "one of native, plain"),
    ("TOKEN_FILE", "token", "an absolute path"),
    ("CA_FILE", "ca.crt", "an absolute path"),
    ("NAMESPACE", "a.b", "a namespace"),
    ("LOG_LEVEL", "trace", "one of debug, info, warning, error"),
    ("LOG_FORMAT", "xml", "one of auto, json, console"),
]  # fmt: skip


def problems(env: Mapping[str, str]) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        load(env)
    return caught.value


@pytest.mark.parametrize(("field", "value"), DEFAULTS.items(), ids=DEFAULTS)
def test_default(field: str, value: object) -> None:
    assert getattr(load(ENV, own_uid=185), field) == value


def test_every_field_and_every_row_is_tested() -> None:
    assert set(DEFAULTS) == set(Settings.__slots__) - {"identity"}
    rows = {row.name for row in TABLE}
    assert {name for name, *_ in GOOD} | {"NAMESPACE"} == rows
    assert {name for name, *_ in BAD} == rows


@pytest.mark.parametrize(("name", "text", "field", "value"), GOOD)
def test_good_value(name: str, text: str, field: str, value: object) -> None:
    assert getattr(made(**{name: text}), field) == value


@pytest.mark.parametrize(("name", "text", "allowed"), BAD)
def test_bad_value_is_named_with_what_was_found_and_what_is_allowed(
    name: str, text: str, allowed: str
) -> None:
    error = problems({**ENV, PREFIX + name: text})
    assert len(error.problems) == 1
    assert error.problems[0].startswith(f"{PREFIX}{name} is {text!r}; allowed: ")
    assert allowed in error.problems[0]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_empty_counts_as_unset(row: object) -> None:
    name = getattr(row, "name", "")
    assert load({**ENV, PREFIX + name: ""}) == load(ENV)


def test_no_name_can_be_shadowed_by_a_service_link() -> None:
    shadowed = [row.name for row in TABLE if row.name.endswith(("_PORT", "_SERVICE_HOST", "_SERVICE_PORT"))]
    assert shadowed == []


def test_all_problems_at_once_and_the_rest_stays_usable() -> None:
    env = {
        **ENV,
        PREFIX + "SCHEME": "x",
        PREFIX + "EXPOSE": "0",
        PREFIX + "LOG_LEVEL": "debug",
        "POD_UID": "",
    }
    error = problems(env)
    assert [problem.split()[0] for problem in error.problems] == [
        PREFIX + "EXPOSE",
        PREFIX + "SCHEME",
        "POD_UID",
    ]
    assert str(error) == "; ".join(error.problems)
    assert (error.settings.scheme, error.settings.expose, error.settings.log_level) == ("auto", 4040, "debug")


@pytest.mark.parametrize("name", ["POD_NAME", "POD_UID", "KUBERNETES_SERVICE_HOST"])
def test_what_the_pod_must_give(name: str) -> None:
    error = problems({key: value for key, value in ENV.items() if key != name})
    assert [problem.split()[0] for problem in error.problems] == [name]


def test_pod_name_that_was_not_substituted() -> None:
    assert (
        problems({**ENV, "POD_NAME": "$(POD_NAME)"})
        .problems[0]
        .startswith("POD_NAME is '$(POD_NAME)'; allowed:")
    )


def test_namespace_own_setting_first_then_the_pods_then_beside_the_token(tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("beside\n")
    env = {**ENV, PREFIX + "TOKEN_FILE": str(tmp_path / "token")}
    assert load({**env, PREFIX + "NAMESPACE": "2nd"}).identity.namespace == "2nd"
    assert load(env).identity.namespace == "team"
    assert load({**env, "POD_NAMESPACE": ""}).identity.namespace == "beside"
    (tmp_path / "namespace").write_bytes(b"\xff\xfe")
    assert problems({**env, "POD_NAMESPACE": ""}).problems[0].startswith("POD_NAMESPACE is ''; allowed:")


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("10.96.0.1", "6443", "https://10.96.0.1:6443"),
        ("fd00::1", "443", "https://[fd00::1]:443"),
        ("kubernetes.default.svc", "", "https://kubernetes.default.svc:443"),
        ("http://127.0.0.1:8001", "443", "http://127.0.0.1:8001"),
    ],
)
def test_api_url(host: str, port: str, url: str) -> None:
    assert load({**ENV, "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}).api_url == url


def test_identity() -> None:
    settings = load({**ENV, "POD_IPS": "10.1.0.1, fd00::5"})
    assert settings.identity.ips == frozenset({"10.1.0.1", "fd00::5"})
    assert settings.identity.holder == "etl-driver/1b4e28ba-2fa1-11d2-883f-0016d3cca427"
    assert not settings.identity.host_network
    assert replace(settings.identity, host_ip="10.1.0.1").host_network
    assert not replace(settings.identity, host_ip="", ips=frozenset({""})).host_network


@pytest.mark.parametrize(
    "name",
    [
        "SPARK_UI_AGENT_SERVICE_HOST",
        "SPARK_UI_AGENT_SERVICE_PORT",
        "SPARK_UI_AGENT_SERVICE_PORT_SPARK_UI",
        "SPARK_UI_AGENT_PORT",
        "SPARK_UI_AGENT_PORT_4040_TCP",
        "SPARK_UI_AGENT_PORT_4040_TCP_ADDR",
        "SPARK_UI_AGENT_X_PORT_53_UDP_PROTO",
    ],
)
def test_service_links_are_no_mistake_of_the_users(name: str) -> None:
    assert load({**ENV, name: "tcp://10.0.0.1:4040"}).warnings == ()


def test_unknown_names_get_one_warning_with_the_nearest_name() -> None:
    settings = load({**ENV, "SPARK_UI_AGENT_SERVCE": "x", "SPARK_UI_AGENT_ZZZ": "", "SPARK_UI_AGENTS": "no"})
    assert settings.warnings == (
        "unknown settings, ignored: SPARK_UI_AGENT_SERVCE (did you mean SPARK_UI_AGENT_SERVICE?), SPARK_UI_AGENT_ZZZ",
    )


def test_the_socket_needs_no_pod_but_good_values() -> None:
    assert control_socket({PREFIX + "DIR": "/tmp/x"}) == Path("/tmp/x/agent.sock")
    with pytest.raises(SettingsError, match="SPARK_UI_AGENT_SCHEME is 'x'"):
        control_socket({PREFIX + "SCHEME": "x"})


def test_split_address() -> None:
    assert split_address("[::]:4900") == ("::", 4900)
    assert split_address("10.0.0.1:0") == ("10.0.0.1", 0)


LABEL = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
POD = st.lists(LABEL, min_size=1, max_size=4).map(".".join).filter(lambda name: len(name) <= 253)


@given(POD)
def test_default_name_is_always_a_valid_service_name(pod: str) -> None:
    name = service_name(pod)
    assert service_parser(name) == name
    assert name.endswith("-ui")


@given(LABEL.map(lambda end: "spark-" + "x" * 60 + end), LABEL.map(lambda end: "spark-" + "x" * 60 + end))
def test_long_names_do_not_meet(one: str, other: str) -> None:
    assert (service_name(one) == service_name(other)) == (one == other)


@pytest.mark.parametrize(
    ("pod", "name"),
    [
        ("etl-driver", "etl-ui"),
        ("etl-7f3a-driver", "etl-7f3a-ui"),
        ("notebook-0", "notebook-0-ui"),
        ("etl.v1.2-driver", "etl-v1-2-ui"),
        ("3d-driver", "ui-3d-ui"),
        ("driver", "driver-ui"),
        ("a" * 60 + "-driver", "a" * 60 + "-ui"),
    ],
)
def test_default_name(pod: str, name: str) -> None:
    assert service_name(pod) == name


@pytest.mark.parametrize(
    ("app", "name"),
    [
        ("etl", "etl-ui-svc"),
        ("a" * 56, "a" * 56 + "-ui-svc"),
        (
            "test-app-with-a-long-name-that-would-be-over-63-characters",
            "test-app-with-a-long-name-that-would-be-over-63-26cd35c6-ui-svc",
        ),
    ],
)
def test_the_operators_name(app: str, name: str) -> None:
    assert operators_service_name(app) == name
