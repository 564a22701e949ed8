"""The part of `check` that needs no API server: settings, the downward API, files and folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from .. import times
from ..settings import Settings
from ..tell.client import LONGEST_PATH, NoAgentError, RefusedError, ask, too_long
from .findings import Finding, note, ok, problem

# The names under which the driver's logging looks for the user's configuration; see docs/architecture.md.
_CONFIGURATIONS = tuple(f"log4j2.{ending}" for ending in ("properties", "xml", "yaml", "json"))


def local_findings(settings: Settings) -> Iterator[Finding]:
    """In the order in which a user would mend them."""
    yield ok("settings", f"Service {settings.service}, mode {settings.mode}, log hook {settings.hook}")
    for warning in settings.warnings:
        yield note("settings", warning, "correct the name or remove it")
    yield from _identity(settings)
    yield _readable(
        "token", settings.token_file, "SPARK_UI_AGENT_TOKEN_FILE", "automountServiceAccountToken: true"
    )
    if settings.api_url.startswith("https"):
        yield _readable(
            "CA", settings.ca_file, "SPARK_UI_AGENT_CA_FILE", "automountServiceAccountToken: true"
        )
    yield _folder(settings)
    yield _agent(settings)
    yield from _hook(settings)


def _identity(settings: Settings) -> Iterator[Finding]:
    identity = settings.identity
    yield ok("downward API", f"Pod {identity.namespace}/{identity.pod}, uid {identity.uid}")
    if not identity.ips or not identity.host_ip:
        yield note(
            "downward API",
            "POD_IP or HOST_IP is empty, so hostNetwork can't be seen",
            "set both by fieldRef status.podIP and status.hostIP",
        )
    elif identity.host_network:
        yield ok("downward API", "the Pod is on its node's network (hostNetwork)")
    if identity.application:
        yield ok("downward API", f"application {identity.application}")
    else:
        tell = note if settings.hook_wanted else problem
        yield tell(
            "downward API",
            "SPARK_APPLICATION_ID is empty, so only the log hook can prove a UI",
            "set it by fieldRef metadata.labels['spark-app-selector'], or turn the log hook on",
        )


def _readable(subject: str, path: Path, variable: str, setting: str) -> Finding:
    try:
        size = len(path.read_bytes().strip())
    except OSError as error:
        return problem(
            subject,
            f"{path} can't be read ({error.strerror})",
            f"set {setting} in the Pod, or name the file in {variable}",
        )
    if not size:
        return problem(
            subject, f"{path} is empty", f"set {setting} in the Pod, or name the file in {variable}"
        )
    return ok(subject, f"{path} is readable")


def _folder(settings: Settings) -> Finding:
    remedy = "mount an emptyDir (medium: Memory) there, writable for the agent's uid, and in the driver's container too"
    if not settings.dir.is_dir():
        return problem("folder", f"{settings.dir} does not exist", remedy)
    if not os.access(settings.dir, os.W_OK | os.X_OK):
        return problem("folder", f"{settings.dir} can't be written by uid {os.getuid()}", remedy)
    if len(bytes(settings.control_socket)) > LONGEST_PATH:
        return problem("folder", too_long(settings.control_socket), "see there")
    return ok("folder", f"{settings.dir} can be written")


def _agent(settings: Settings) -> Finding:
    try:
        found = ask(settings.control_socket, "status", times.CONTROL_REQUEST)
    except NoAgentError:
        return note("agent", "none is running beside this command")
    except RefusedError as error:
        return problem("agent", str(error), "see its log")
    except TimeoutError:
        return problem("agent", f"gave no answer within {times.CONTROL_REQUEST:g} s", "see its log")
    return ok("agent", f"running, state {found.get('state')}, log hook {found.get('hook')}")


def _hook(settings: Settings) -> Iterator[Finding]:
    if settings.hook == "off":
        yield ok("log hook", "off by SPARK_UI_AGENT_HOOK")
        return
    if not settings.hook_wanted:
        yield note(
            "log hook",
            "off, since SPARK_UI_AGENT_DRIVER_CONF_DIR is unset: a stop is seen only after the UI has closed",
            "mount the driver's conf directory here and name it, or set SPARK_UI_AGENT_HOOK=on",
        )
        return
    conf = settings.driver_conf_dir
    if conf is not None and not os.access(conf, os.R_OK | os.X_OK):
        yield problem(
            "log hook",
            f"SPARK_UI_AGENT_DRIVER_CONF_DIR {conf} can't be read",
            "mount the volume spark-conf-volume-driver there",
        )
    standing = [name for name in _CONFIGURATIONS if (settings.dir / name).is_file()]
    if len(standing) == 1 and (settings.dir / "hook.xml").is_file():
        yield ok("log hook", f"{standing[0]} and hook.xml stand in {settings.dir}")
    else:
        yield note(
            "log hook",
            f"its files do not stand in {settings.dir}",
            "run `spark-ui-agent install-hook` before the driver starts: postStart, or an init container",
        )
