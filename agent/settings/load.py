"""From the environment to `Settings`."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from . import values
from .names import service_name
from .shape import PREFIX, SOCKET, Identity, Settings, SettingsError
from .table import TABLE

# A Service makes these variables in every Pod of its namespace (kubelet, "service links"): a Service named
# `spark-ui-agent-x` yields SPARK_UI_AGENT_X_SERVICE_HOST and the like, which are no mistake of the user's.
_LINK = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$")
_KNOWN = frozenset(PREFIX + row.name for row in TABLE)


def load(env: Mapping[str, str], *, own_uid: int | None = None) -> Settings:
    """Reads all settings from `env`; `own_uid` stands for the agent's own user id where DRIVER_UID is unset.

    Raises:
        SettingsError: with one problem for each bad or missing variable.
    """
    found, problems = _table(env)
    identity = _identity(env, found)
    problems += _misplaced(env, identity)
    settings = _build(found, identity, env, os.getuid() if own_uid is None else own_uid)
    if problems:
        raise SettingsError(problems, settings)
    return settings


def control_socket(env: Mapping[str, str]) -> Path:
    """The running agent's socket, for commands that only talk to it: they need no downward API and no API server.

    Raises:
        SettingsError: with one problem for each bad variable of ours.
    """
    found, problems = _table(env)
    if problems:
        raise SettingsError(problems, _build(found, _identity(env, found), env, os.getuid()))
    return Path(str(found["DIR"])) / SOCKET


def _table(env: Mapping[str, str]) -> tuple[dict[str, object], list[str]]:
    """The value of each row, the default's in place of a bad one; and the problems. None where unset."""
    found: dict[str, object] = {}
    problems: list[str] = []
    for row in TABLE:
        text = env.get(PREFIX + row.name, "").strip()
        found[row.name] = row.parse(row.default) if row.default else None
        if text:
            try:
                found[row.name] = row.parse(text)
            except ValueError as error:
                problems.append(f"{PREFIX}{row.name} is {text!r}; allowed: {error}")
    return found, problems


def _identity(env: Mapping[str, str], found: Mapping[str, object]) -> Identity:
    addresses = [env.get("POD_IP", ""), *env.get("POD_IPS", "").split(",")]
    return Identity(
        pod=env.get("POD_NAME", ""),
        namespace=str(found["NAMESPACE"] or env.get("POD_NAMESPACE", "") or _own_namespace(found)),
        uid=env.get("POD_UID", ""),
        ips=frozenset(filter(None, (address.strip() for address in addresses))),
        host_ip=env.get("HOST_IP", ""),
        application=env.get("SPARK_APPLICATION_ID", ""),
    )


def _own_namespace(found: Mapping[str, object]) -> str:
    """As kubelet writes it beside the token."""
    try:
        return Path(str(found["TOKEN_FILE"])).with_name("namespace").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def _misplaced(env: Mapping[str, str], identity: Identity) -> list[str]:
    """What the Pod template and kubelet have to give."""
    problems = []
    try:
        values.pod(identity.pod)
    except ValueError as error:
        problems.append(f"POD_NAME is {identity.pod!r}; allowed: {error}, by fieldRef metadata.name")
    if not identity.uid:
        problems.append("POD_UID is ''; allowed: the Pod's uid, by fieldRef metadata.uid")
    try:
        values.namespace(identity.namespace)
    except ValueError as error:
        problems.append(
            f"POD_NAMESPACE is {identity.namespace!r}; allowed: {error}, by fieldRef metadata.namespace"
        )
    if not env.get("KUBERNETES_SERVICE_HOST"):
        problems.append(
            "KUBERNETES_SERVICE_HOST is ''; allowed: the API server's address, as kubelet sets it"
        )
    return problems


def _api_url(env: Mapping[str, str]) -> str:
    """The API server from the variables that kubelet sets in every container; empty when they are missing."""
    host = env.get("KUBERNETES_SERVICE_HOST", "")
    port = env.get("KUBERNETES_SERVICE_PORT", "") or "443"
    # Only a stand-in for trials speaks plain HTTP, and only when told so by the whole URL.
    if not host or host.startswith("http://"):
        return host
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _unknown(env: Mapping[str, str]) -> tuple[str, ...]:
    """One warning that names every variable of our prefix that is not ours, with the nearest name."""
    names = sorted(
        name for name in env if name.startswith(PREFIX) and name not in _KNOWN and not _LINK.search(name)
    )
    if not names:
        return ()
    own = [row.name for row in TABLE]
    told = []
    for name in names:
        near = difflib.get_close_matches(name.removeprefix(PREFIX), own, n=1, cutoff=0.75)
        told.append(f"{name} (did you mean {PREFIX}{near[0]}?)" if near else name)
    return ("unknown settings, ignored: " + ", ".join(told),)


def _half_seen(identity: Identity) -> tuple[str, ...]:
    """Without both addresses hostNetwork can't be seen, and with it goes the care that a shared network needs."""
    if identity.ips and identity.host_ip:
        return ()
    return (
        "POD_IP or HOST_IP is empty, so hostNetwork is not seen; set them by fieldRef status.podIP, status.hostIP",
    )


def _build(found: Mapping[str, object], identity: Identity, env: Mapping[str, str], own_uid: int) -> Settings:
    def text(name: str) -> str:
        return str(found[name] or "")

    def mapping(name: str) -> dict[str, str]:
        value = found[name]
        return dict(value) if isinstance(value, dict) else {}

    def number(name: str, unset: float = 0) -> float:
        value = found[name]
        return value if isinstance(value, int | float) else unset

    conf_dir = found["DRIVER_CONF_DIR"]
    return Settings(
        identity=identity,
        service=text("SERVICE") or service_name(identity.pod),
        service_given=found["SERVICE"] is not None,
        service_labels=mapping("SERVICE_LABELS"),
        create=found["CREATE"] is True,
        create_labels=mapping("CREATE_LABELS"),
        create_annotations=mapping("CREATE_ANNOTATIONS"),
        adopt=text("ADOPT"),
        service_type=text("SERVICE_TYPE"),
        expose=int(number("EXPOSE")),
        port_name=text("PORT_NAME"),
        selector=mapping("SELECTOR"),
        scheme=text("SCHEME"),
        filtered_ui=text("FILTERED_UI"),
        contexts=text("CONTEXTS"),
        driver_container=text("DRIVER_CONTAINER"),
        driver_uid=int(number("DRIVER_UID", own_uid)),
        dir=Path(text("DIR")),
        driver_conf_dir=conf_dir if isinstance(conf_dir, Path) else None,
        hook=text("HOOK"),
        hook_timeout=number("HOOK_TIMEOUT"),
        guard=text("GUARD"),
        settle=number("SETTLE"),
        health_address=text("HEALTH_ADDRESS"),
        mode=text("MODE"),
        token_file=Path(text("TOKEN_FILE")),
        ca_file=Path(text("CA_FILE")),
        api_url=_api_url(env),
        log_level=text("LOG_LEVEL"),
        log_format=text("LOG_FORMAT"),
        warnings=_unknown(env) + _half_seen(identity),
    )
