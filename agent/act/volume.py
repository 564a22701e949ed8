"""The files in the volume that agent and driver share: the driver's logging, the hook, its port and secret.

Standard library alone: `install-hook` runs in a postStart hook under the sidecar's memory limit. It may run at the
same moment as the agent's own start, so every file is written by rename, and only when it differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..decide.log4j import (
    BASE_FILE,
    HOOK_FILE,
    HOOKED,
    LOGGING_FILES,
    Bounds,
    base,
    fillers,
    format_of,
    fragment,
    includes,
    users_file,
)
from ..decide.loglevels import ABOVE_INFO, above_info, read_properties
from ..paths import INSTALLED_FILE, PROOF_FILE
from ..settings import Settings
from .files import read, write
from .hookkey import KEY_FILE, key

READABLE = 0o644  # for the driver, whose uid may be another; the volume itself is what keeps others out
MOST_READ = 1 << 20  # bytes of a user's file that are understood; a ConfigMap holds no more
MOST_COPIED = 8 << 20  # bytes that are copied: the volume is memory
MOST_BESIDE = 8  # files that it takes in
STRUCTURED = "spark.log.structuredLogging.enabled"
LOG_LEVEL = "spark.log.level"


@dataclass(frozen=True, slots=True)
class Installed:
    """What stands in the volume. `said` is for people, a line for each thing done or not done."""

    hook: bool
    port: int
    secret: str
    said: tuple[str, ...]

    @classmethod
    def nothing(cls, *said: str) -> Installed:
        """There is no hook."""
        return cls(hook=False, port=0, secret="", said=said)


@dataclass(frozen=True, slots=True)
class _Logging:
    """The one logging file to write, whether a hook may stand beside it, and what is quiet in it."""

    name: str
    content: bytes
    seen: bool  # the user's wish is known
    quiet: dict[str, str]
    said: str
    beside: tuple[Path, ...] = ()  # what the file takes in
    fillers: Mapping[str, bytes] = field(default_factory=dict)


def install(settings: Settings) -> Installed:
    """Writes exactly one logging file into DIR, then hook.xml when the hook is wanted. Does nothing twice.

    Raises nothing: a volume that can't be written costs the hook, never the driver.
    """
    try:
        return _install(settings)
    except OSError as error:
        return Installed.nothing(
            f"the hook's files can't be written: {error}; "
            f"mount a volume at {settings.dir} (SPARK_UI_AGENT_DIR) that this user may write"
        )


def had_a_ui(directory: Path) -> bool:
    """True when a former life of this agent has proven a UI, and so may have published it."""
    return (directory / PROOF_FILE).exists()


def _install(settings: Settings) -> Installed:
    settings.dir.mkdir(parents=True, exist_ok=True)
    logging = _logging(settings.driver_conf_dir)
    files = {**logging.fillers, logging.name: logging.content}
    port, secret, said = 0, "", f"no hook: {_why_no_hook(settings, logging)}"
    hooked = not _why_no_hook(settings, logging)
    if hooked:
        port, secret = key(settings.dir / KEY_FILE)
        hook = fragment(port, secret, Bounds.of(settings.hook_timeout), logging.quiet)
        files[HOOK_FILE] = hook.encode()
        said = f"hook: {settings.dir / HOOK_FILE}, port {port}"
    for path in logging.beside:
        with suppress(OSError):
            write(settings.dir / path.name, read(path, MOST_READ), READABLE)
    for name in (*LOGGING_FILES, HOOK_FILE):
        if name in files:
            write(settings.dir / name, files[name], READABLE)
        else:
            (settings.dir / name).unlink(missing_ok=True)
    write(settings.dir / INSTALLED_FILE, b"", READABLE)
    return Installed(hook=hooked, port=port, secret=secret, said=(logging.said, said))


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
        return _based({}, seen=False, said="no conf directory given")
    try:
        name = users_file([path.name for path in conf.iterdir()])
        if name is None:
            return _based(_spark_settings(conf), seen=True, said=f"no log4j2 file in {conf}")
        content = read(conf / name, MOST_COPIED)
    except OSError as error:
        return _based({}, seen=False, said=f"{conf} can't be read: {error}")
    if len(content) > MOST_COPIED:
        return _based({}, seen=False, said=f"{conf / name} is over {MOST_COPIED} bytes")
    form = format_of(name)
    target = f"log4j2.{form}"
    said = f"logging: {target}, a copy of {conf / name}"
    if len(content) > MOST_READ:
        return _Logging(target, content, seen=False, quiet={}, said=said)
    text = content.decode("utf-8", "replace")
    return _Logging(
        target,
        content,
        seen=True,
        quiet=_quiet(_spark_settings(conf), above_info(text, form, HOOKED)),
        said=said,
        beside=tuple(conf / one for one in includes(text)[:MOST_BESIDE]) if form == "xml" else (),
        fillers={place: filler.encode() for place, filler in fillers(target, text).items()},
    )


def _based(spark: Mapping[str, str], *, seen: bool, said: str) -> _Logging:
    content = base(structured=spark.get(STRUCTURED, "").strip().lower() == "true").encode()
    return _Logging(
        BASE_FILE, content, seen, _quiet(spark, {}), f"logging: {BASE_FILE}, as Spark's default, for {said}"
    )


def _spark_settings(conf: Path) -> dict[str, str]:
    """Spark's own settings as found beside the logging file.

    In cluster mode Spark mounts all of its configuration as `spark.properties`; elsewhere `spark-defaults.conf` counts.
    """
    for name in ("spark.properties", "spark-defaults.conf"):
        with suppress(OSError):
            return read_properties(read(conf / name, MOST_READ).decode("utf-8", "replace"))
    return {}


def _quiet(spark: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """The hooked loggers that stay above INFO: by the user's file, and by `spark.log.level`, which beats it.

    Spark 3.5 and newer calls setLogLevel with it before the context's first line.
    """
    level = spark.get(LOG_LEVEL, "").strip().upper()
    return dict.fromkeys(HOOKED, level) if level in ABOVE_INFO else dict(found)
