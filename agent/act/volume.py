"""The files in the volume that agent and driver share: the driver's logging, the hook, its port and secret.

Standard library alone: `install-hook` runs in a postStart hook under the sidecar's memory limit. It may run at the
same moment as the agent's own start, so every file is written by rename, and only when it differs.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..decide.log4j import (
    BASE_FILE,
    HOOK_FILE,
    HOOKED,
    LOGGING_FILES,
    Bounds,
    base,
    format_of,
    fragment,
    includes,
    users_file,
)
from ..decide.loglevels import above_info, read_properties
from ..settings import Settings

KEY_FILE = "hook.json"
READABLE = 0o644  # for the driver, whose uid may be another; the volume itself is what keeps others out
MOST_READ = 1 << 20  # bytes of a user's file that are understood; a ConfigMap holds no more
MOST_COPIED = 8 << 20  # bytes that are copied: the volume is memory
MOST_BESIDE = 8  # files that it takes in
STRUCTURED = "spark.log.structuredLogging.enabled"

# Below NodePorts (30000-32767) and Linux's default ephemeral ports (32768-60999), above what servers like to use.
PORTS = range(20000, 30000)


@dataclass(frozen=True, slots=True)
class Installed:
    """What stands in the volume. `said` is for people, a line for each thing done or not done."""

    hook: bool
    port: int
    secret: str
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Logging:
    """The one logging file to write, whether a hook may stand beside it, and what is quiet in it."""

    name: str
    content: bytes
    seen: bool  # the user's wish is known
    quiet: dict[str, str]
    said: str
    beside: tuple[Path, ...] = ()  # what the file takes in


def install(settings: Settings) -> Installed:
    """Writes exactly one logging file into DIR, then hook.xml when the hook is wanted. Does nothing twice.

    Raises nothing: a volume that can't be written costs the hook, never the driver.
    """
    try:
        return _install(settings)
    except OSError as error:
        said = (
            f"the hook's files can't be written: {error}; "
            f"mount a volume at {settings.dir} (SPARK_UI_AGENT_DIR) that this user may write",
        )
        return Installed(hook=False, port=0, secret="", said=said)


def _install(settings: Settings) -> Installed:
    settings.dir.mkdir(parents=True, exist_ok=True)
    logging = _logging(settings.driver_conf_dir)
    why_not = _why_no_hook(settings, logging)
    if why_not:
        (settings.dir / HOOK_FILE).unlink(missing_ok=True)
    for path in logging.beside:
        if path.name != KEY_FILE:
            with suppress(OSError):
                _write(settings.dir / path.name, _read(path, MOST_READ), READABLE)
    _write(settings.dir / logging.name, logging.content, READABLE)
    for name in LOGGING_FILES:
        if name != logging.name:
            (settings.dir / name).unlink(missing_ok=True)
    if why_not:
        return Installed(hook=False, port=0, secret="", said=(logging.said, f"no hook: {why_not}"))
    port, secret = _key(settings.dir / KEY_FILE)
    hook = fragment(port, secret, Bounds.of(settings.hook_timeout), logging.quiet)
    _write(settings.dir / HOOK_FILE, hook.encode(), READABLE)
    said = f"hook: {settings.dir / HOOK_FILE}, port {port}"
    return Installed(hook=True, port=port, secret=secret, said=(logging.said, said))


def _why_no_hook(settings: Settings, logging: _Logging) -> str:
    if settings.hook == "off":
        return "SPARK_UI_AGENT_HOOK is off"
    if settings.hook == "auto" and settings.driver_conf_dir is None:
        return "SPARK_UI_AGENT_DRIVER_CONF_DIR is not set, so the driver's own logging is not known; set it, or HOOK=on"
    if settings.hook == "auto" and not logging.seen:
        return "the driver's own logging could not be read; mend that, or set SPARK_UI_AGENT_HOOK=on"
    return ""


def _logging(conf: Path | None) -> _Logging:
    """The user's file as found in the driver's conf directory, or Spark's default logging."""
    if conf is None:
        return _based(structured=False, seen=False, said="no conf directory given")
    try:
        name = users_file([path.name for path in conf.iterdir()])
        if name is None:
            return _based(structured=_structured(conf), seen=True, said=f"no log4j2 file in {conf}")
        content = _read(conf / name, MOST_COPIED)
    except OSError as error:
        return _based(structured=False, seen=False, said=f"{conf} can't be read: {error}")
    if len(content) > MOST_COPIED:
        return _based(structured=False, seen=False, said=f"{conf / name} is over {MOST_COPIED} bytes")
    form = format_of(name)
    understood = len(content) <= MOST_READ
    quiet = above_info(content.decode("utf-8", "replace"), form, HOOKED) if understood else {}
    beside = includes(content.decode("utf-8", "replace")) if form == "xml" and understood else []
    target = f"log4j2.{form}"
    said = f"logging: {target}, a copy of {conf / name}"
    return _Logging(
        target, content, understood, quiet, said, tuple(conf / one for one in beside[:MOST_BESIDE])
    )


def _based(*, structured: bool, seen: bool, said: str) -> _Logging:
    content = base(structured=structured).encode()
    return _Logging(BASE_FILE, content, seen, {}, f"logging: {BASE_FILE}, as Spark's default, for {said}")


def _structured(conf: Path) -> bool:
    """Whether the driver logs JSON by default.

    In cluster mode Spark mounts all of its configuration as `spark.properties`; elsewhere `spark-defaults.conf` counts.
    """
    for name in ("spark.properties", "spark-defaults.conf"):
        with suppress(OSError):
            pairs = read_properties(_read(conf / name, MOST_READ).decode("utf-8", "replace"))
            return pairs.get(STRUCTURED, "").strip().lower() == "true"
    return False


def _read(path: Path, most: int) -> bytes:
    """At most `most` + 1 bytes of a regular file; never waits for a writer, as a FIFO would."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} is no regular file")
        return file.read(most + 1)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Makes `path` a file with this content by rename; one that is right is left alone."""
    with suppress(OSError):
        right = not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) == mode
        if right and _read(path, len(content)) == content:
            return
    made = _temporary(path, content, mode)
    try:
        made.replace(path)
    except OSError:
        made.unlink(missing_ok=True)
        raise


def _temporary(path: Path, content: bytes, mode: int) -> Path:
    made = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
    except OSError:
        made.unlink(missing_ok=True)
        raise
    return made


def _key(path: Path) -> tuple[int, str]:
    """The hook's port and secret: those that stand, or new ones. Two callers at once get the same."""
    standing = _standing(path)
    if standing is not None:
        return standing
    port, secret = _free_port(), secrets.token_hex(16)
    made = _temporary(path, json.dumps({"port": port, "secret": secret}).encode(), 0o600)
    try:
        os.link(made, path)
    except FileExistsError:
        standing = _standing(path)
        if standing is not None:
            return standing
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)
    return port, secret


def _standing(path: Path) -> tuple[int, str] | None:
    """What the file holds; None when it is missing or holds no key.

    Raises:
        OSError: it may not be read: another user wrote it.
    """
    if path.is_symlink():
        return None
    try:
        found = json.loads(_read(path, 1024))
    except (FileNotFoundError, ValueError):
        return None
    port, secret = (found.get("port"), found.get("secret")) if isinstance(found, dict) else (None, None)
    if not isinstance(port, int) or not 1 <= port <= 65535:
        return None
    return (port, secret) if isinstance(secret, str) and re.fullmatch(r"[0-9a-f]{32}", secret) else None


def _free_port() -> int:
    """A free loopback port that no outgoing connection takes: under hostNetwork the whole node uses these."""
    low, high = 1, 0
    with suppress(OSError, ValueError):
        bounds = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()
        low, high = (int(bound) for bound in bounds)
    outside = [port for port in PORTS if not low <= port <= high]
    for port in (secrets.choice(outside) for _ in range(64 if outside else 0)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
