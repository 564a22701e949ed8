"""The driver's log, line by line, with the hook and without: real drivers, one pair for each kind of logging."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import zipfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.act.volume import install
from agent.decide.log4j import HOOK_FILE, LOGGING_FILES
from agent.model import Fact, HookBound, HookStopping
from agent.sense.loghook import LogHook
from agent.sense.sockets import SocketTable
from agent.settings import Settings, load
from sandbox.spark.driver import SparkDriver

DEFAULT_PROFILE = "Using Spark's default log#j profile: org/apache/spark/log#j#{}.properties"
BIND = "Successfully started service 'SparkUI' on port #."
STOP = "SparkContext is stopping with exitCode #"


def properties(level: str, mark: str = "MINE") -> str:
    """A user's own file: another appender, another layout, Spark's loggers under the root alone."""
    return (
        f"rootLogger.level = {level}\nrootLogger.appenderRef.a.ref = mine\nappender.a.type = Console\n"
        "appender.a.name = mine\nappender.a.target = SYSTEM_ERR\nappender.a.layout.type = PatternLayout\n"
        f"appender.a.layout.pattern = {mark} %p %c: %m%n\n"
    )


def xml(level: str, loggers: str = "", status: str = "WARN") -> str:
    return (
        f'<Configuration status="{status}"><Appenders><Console name="m" target="SYSTEM_ERR">'
        '<PatternLayout pattern="XML %p %c: %m%n"/></Console></Appenders><Loggers>'
        f'<Root level="{level}"><AppenderRef ref="m"/></Root>{loggers}</Loggers></Configuration>'
    )


YAML = """\
Configuration:
  Appenders:
    Console:
      name: m
      target: SYSTEM_ERR
      PatternLayout:
        pattern: "YAML %p %c: %m%n"
  Loggers:
    Root:
      level: error
      AppenderRef:
        ref: m
"""
JSON = """\
{"configuration": {
  "appenders": {"Console": {"name": "m", "target": "SYSTEM_ERR", "PatternLayout": {"pattern": "JSON %p %c: %m%n"}}},
  "loggers": {"root": {"level": "info", "AppenderRef": {"ref": "m"}}}}}
"""


@dataclass(frozen=True)
class Case:
    """One kind of logging: what stands in the conf directory, how the driver runs, what may differ."""

    name: str
    version: str
    files: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    level: str | None = None  # of setLogLevel
    hook: str = "auto"
    away: bool = False  # the files stand, no agent listens
    less: tuple[str, ...] = ()  # lines that only the driver without the hook has, each as often
    more: tuple[str, ...] = ()  # what the additional lines end or go on with
    heard: tuple[type[Fact], ...] = (HookBound, HookStopping)


PLAIN = (DEFAULT_PROFILE.format("-defaults"),)
CASES = (
    Case("none", "3.5.9"),
    Case("none", "4.1.4", less=PLAIN),
    Case("none", "4.3.0", less=PLAIN),
    Case("none, agent away", "4.1.4", less=PLAIN, away=True, heard=()),
    Case("none, setLogLevel", "4.1.4", level="WARN", less=PLAIN, heard=(HookBound,)),
    Case(
        "none, structured",
        "4.3.0",
        {"spark.properties": "spark.log.structuredLogging.enabled=true\n"},
        {"spark.log.structuredLogging.enabled": "true"},
        less=(DEFAULT_PROFILE.format("-json-layout"),),
    ),
    Case("properties at INFO", "3.5.9", {"log4j2.properties": properties("info")}),
    Case("properties at WARN", "4.1.4", {"log4j2.properties": properties("warn")}, more=(BIND, STOP)),
    Case(
        "XML at WARN, Spark at INFO",
        "4.3.0",
        {"log4j2.xml": xml("warn", '<Logger name="org.apache.spark" level="info"/>')},
    ),
    Case("YAML at ERROR", "3.5.9", {"log4j2.yaml": YAML}, more=(BIND, STOP)),
    Case("JSON at INFO", "4.1.4", {"log4j2.json": JSON}),
    Case(
        "a second file in a jar",
        "4.1.4",
        {"log4j2.properties": properties("info"), "in the jar": xml("info")},
    ),
    Case(
        "a -D of the user's",
        "4.1.4",
        {"own.properties": properties("info", "OWN")},
        {"spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile={conf}/own.properties"},
        heard=(),
    ),
    Case(
        "HOOK=off",
        "4.3.0",
        {"log4j2.properties": "status = warn\n" + properties("info")},
        hook="off",
        heard=(),
    ),
)


def identity(case: Case) -> str:
    return f"{case.version} {case.name}"


class Agent:
    """The hook's files and, unless away, its receiver; answers "stopping" at once."""

    def __init__(self, settings: Settings) -> None:
        self.facts: list[Fact] = []
        self._settings = settings

    @contextlib.asynccontextmanager
    async def running(self, *, away: bool) -> AsyncIterator[None]:
        installed = install(self._settings)
        assert installed.hook == (self._settings.hook != "off")
        if away or not installed.hook:
            yield
            return
        table = SocketTable()
        warnings: list[str] = []
        hook = LogHook(
            installed.port,
            installed.secret,
            self._settings.hook_timeout,
            self.facts.append,
            scan=table.scan,
            withdrawn=_at_once,
            count=lambda _: None,
            warn=warnings.append,
            driver_uid=os.getuid(),
        )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(hook.run())
            yield
            task.cancel()
        table.close()
        assert warnings == []


async def _at_once(_pid: int, _deadline: float) -> bool:
    return True


async def drive(case: Case, folder: Path, *, hooked: bool) -> tuple[Counter[str], list[Fact]]:
    """One life: a context, a job, stop(). Returns its log, with what differs from run to run taken out."""
    folder.mkdir()
    conf_dir, shared = folder / "conf", folder / "shared"
    conf_dir.mkdir()
    conf = {name: value.format(conf=conf_dir) for name, value in case.conf.items()}
    for name, content in case.files.items():
        if name == "in the jar":
            conf["spark.driver.extraClassPath"] = str(folder / "logging.jar")
            with zipfile.ZipFile(folder / "logging.jar", "w") as jar:
                jar.writestr("log4j2.xml", content)
        else:
            (conf_dir / name).write_text(content)
    settings = load(
        {
            "POD_NAME": "drv-1",
            "POD_UID": "0a1b",
            "POD_NAMESPACE": "t",
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "SPARK_UI_AGENT_DIR": str(shared),
            "SPARK_UI_AGENT_DRIVER_CONF_DIR": str(conf_dir),
            "SPARK_UI_AGENT_HOOK": case.hook,
        }
    )
    env = {"SPARK_LOCAL_IP": "127.0.0.1"}  # else Spark warns before it knows how to log
    agent = Agent(settings)
    async with contextlib.AsyncExitStack() as stack:
        if hooked:
            await stack.enter_async_context(agent.running(away=case.away))
            files = ",".join(str(shared / name) for name in (*LOGGING_FILES, HOOK_FILE))
            env["LOG4J_CONFIGURATION_FILE"] = files
        driver = await stack.enter_async_context(
            SparkDriver.start(version=case.version, conf=conf, conf_dir=conf_dir, env=env)
        )
        port = await driver.ui_bound()
        if case.level is not None:
            await driver.set_log_level(case.level)
        assert await driver.result() == 499500
        await driver.stop_context()
        assert await driver.exit(0) == 0
    if case.heard and hooked:
        bound = agent.facts[0]
        assert isinstance(bound, HookBound)
        assert bound.listener is not None
        assert bound.port == bound.listener.port == port
    # What the garbage collection of the JVM finds to clean is no matter of the hook's.
    lines = [line.text for line in driver.trace.log if "Removed broadcast_" not in line.text]
    return Counter(map(_steady, lines)), agent.facts


def _steady(line: str) -> str:
    line = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID", line)
    line = re.sub(r"@[0-9a-f]+\b", "@H", line)
    line = re.sub(r"(/[\w.-]+)?/driver-?[\w.-]*/", "/DIR/", line)
    return re.sub(r"\d+", "#", re.sub(r"(?<=\d)[.:]\d+", "", line))


@pytest.mark.parametrize("case", CASES, ids=identity)
async def test_the_log_is_the_users(case: Case, tmp_path: Path) -> None:
    (bare, _), (hooked, facts) = await asyncio.gather(
        drive(case, tmp_path / "bare", hooked=False), drive(case, tmp_path / "hooked", hooked=True)
    )
    assert bare.total() > 0 or case.files
    less, more = sorted((bare - hooked).elements()), sorted((hooked - bare).elements())
    assert Counter(less) == Counter(case.less), "\n".join(
        ["only without the hook:", *less, "only with it:", *more]
    )
    assert len(more) == len(case.more), "\n".join(more)
    assert all(any(part in line for line in more) for part in case.more), "\n".join(more)
    assert tuple(type(fact) for fact in facts) == case.heard
