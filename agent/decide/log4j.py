"""The driver's log4j2 configuration: whose file counts, Spark's default logging, and the fragment of the hook.

log4j-core (2.20 in Spark 3.5, 2.24 in 4.1, 2.25 in 4.3) merges the files of LOG4J_CONFIGURATION_FILE that exist, in
order, and skips the rest in silence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from .. import times
from .hookpost import BOUND, CONTEXT, HEADER, LAYOUT, STOPPING, UTILS

HOOK_FILE = "hook.xml"
BASE_FILE = "log4j2.xml"
# In the order of LOG4J_CONFIGURATION_FILE, where HOOK_FILE comes last.
LOGGING_FILES = ("log4j2.properties", "log4j2.xml", "log4j2.yaml", "log4j2.json")

# Extension of a user's file -> its format, in the order in which log4j2 looks (the @Order of its four factories,
# and within one the order of its suffixes).
FORMATS: Mapping[str, str] = {
    "properties": "properties",
    "yml": "yaml",
    "yaml": "yaml",
    "json": "json",
    "jsn": "json",
    "xml": "xml",
}

HOOKED = (UTILS, CONTEXT)  # the loggers that say what the hook passes on


def users_file(names: Collection[str]) -> str | None:
    """Which of the files in Spark's conf directory log4j2 would load; None when there is none for it.

    Spark puts its conf directory first on the class path and leaves the search to log4j2, which takes any
    `log4j2-test` before any `log4j2`.
    """
    for stem in ("log4j2-test", "log4j2"):
        for extension in FORMATS:
            if f"{stem}.{extension}" in names:
                return f"{stem}.{extension}"
    return None


def format_of(name: str) -> str:
    """The format of a user's file: `properties`, `yaml`, `json` or `xml`."""
    return FORMATS[name.rpartition(".")[2]]


def includes(content: str) -> list[str]:
    """The files beside it that a user's XML takes in by XInclude, where they are XML and in its own folder."""
    found = re.findall(r"""<(?:\w+:)?include\s[^>]*?\bhref\s*=\s*["'](\w[\w.-]*\.xml)["']""", content)
    return [name for name in found if name not in (*LOGGING_FILES, HOOK_FILE)]


_EMPTY = {
    "json": '{"configuration": {}}\n',
    "properties": "# empty\n",
    "xml": "<Configuration/>\n",
    "yaml": "configuration: {}\n",
}


def fillers(name: str, content: str) -> dict[str, str]:
    """Files without effect for the places after `name` in the list, the hook's own included.

    Where the user's file sets log4j2's own `status` to WARN or lower, every missing file after it costs the driver's
    log a line ("Unable to create configuration for ..., ignoring").
    """
    if "status" not in content.lower():
        return {}
    places = (*LOGGING_FILES, HOOK_FILE)
    return {place: _EMPTY[place.rpartition(".")[2]] for place in places[places.index(name) + 1 :]}


_PATTERN = '<PatternLayout pattern="%d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex"/>'
_JSON = '<JsonTemplateLayout eventTemplateUri="classpath:org/apache/spark/SparkLayout.json"/>'

# The arbiters (log4j 2.15 and newer) choose while the file is read. Which class marks what:
# - JsonTemplateLayout comes with Spark 4; without it a JSON console would be no console at all.
# - UUIDv7Generator is in Spark 4.3 and not in 4.1; between them SPARK-55237 swapped one quietened Hive logger for another.
_BASE = """\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration>
  <Appenders>
{console}
  </Appenders>
  <Loggers>
    <Root level="info"><AppenderRef ref="console"/></Root>
    <Logger name="org.sparkproject.jetty" level="warn"/>
    <Logger name="org.sparkproject.jetty.util.component.AbstractLifeCycle" level="error"/>
    <Logger name="org.apache.spark.repl.SparkIMain$exprTyper" level="info"/>
    <Logger name="org.apache.spark.repl.SparkILoop$SparkILoopInterpreter" level="info"/>
    <Logger name="org.apache.spark.repl.Main" level="warn"/>
    <Logger name="org.apache.hadoop.hive.metastore.RetryingHMSHandler" level="fatal"/>
    <Select>
      <ClassArbiter className="org.apache.spark.util.UUIDv7Generator">
        <Logger name="org.apache.hadoop.hive.metastore.ObjectStore" level="error"/>
      </ClassArbiter>
      <DefaultArbiter>
        <Logger name="org.apache.hadoop.hive.ql.exec.FunctionRegistry" level="error"/>
      </DefaultArbiter>
    </Select>
    <Logger name="org.apache.parquet.CorruptStatistics" level="error"/>
    <Logger name="parquet.CorruptStatistics" level="error"/>
  </Loggers>
</Configuration>
"""
_PLAIN = f'    <Console name="console" target="SYSTEM_ERR">{_PATTERN}</Console>'
_STRUCTURED = f"""\
    <Select>
      <ClassArbiter className="org.apache.logging.log4j.layout.template.json.JsonTemplateLayout">
        <Console name="console" target="SYSTEM_ERR">{_JSON}</Console>
      </ClassArbiter>
      <DefaultArbiter>
        <Console name="console" target="SYSTEM_ERR">{_PATTERN}</Console>
      </DefaultArbiter>
    </Select>"""


def base(*, structured: bool) -> str:
    """Spark's own default logging, for a driver whose user has no log4j2 file.

    Same lines, same levels as `org/apache/spark/log4j2-defaults.properties` of Spark 3.5.9, 4.1.4 and 4.3.0, or, when
    `structured` (spark.log.structuredLogging.enabled, Spark 4), as `log4j2-json-layout.properties`.
    """
    return _BASE.format(console=_STRUCTURED if structured else _PLAIN)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long, in seconds, the driver's logging thread waits for us: to connect, for each kind of answer."""

    connect: float
    bound: float
    stopping: float

    @classmethod
    def of(cls, hook_timeout: float) -> Bounds:
        """Shares `HOOK_TIMEOUT` out, so that connecting and waiting together stay within it."""
        connect = min(times.HOOK_CONNECT, hook_timeout / 4)
        rest = hook_timeout - connect
        return cls(connect=connect, bound=min(times.HOOK_BOUND, rest), stopping=rest)

    @property
    def answer(self) -> float:
        """When "stopping" is answered at the latest, counted from its arrival: before the driver gives up."""
        return max(self.stopping - times.HOOK_EARLY, self.stopping / 2)


_APPENDER = """\
    <Http name="spark-ui-agent-{kind}" url="http://127.0.0.1:{port}/" method="POST" connectTimeoutMillis="{connect:.0f}" \
readTimeoutMillis="{read:.0f}">
      <Property name="{header}" value="{secret}"/>
      <RegexFilter regex="{regex}" onMatch="ACCEPT" onMismatch="DENY"/>
      <PatternLayout pattern="{layout}"/>
    </Http>"""
_INHERITING = """\
    <Logger name="{name}"><AppenderRef ref="spark-ui-agent-{kind}"/></Logger>"""
_RAISED = """\
    <Logger name="{name}" level="info">
      <Filters>
        <ThresholdFilter level="{level}" onMatch="ACCEPT" onMismatch="NEUTRAL"/>
        <RegexFilter regex="{regex}" onMatch="ACCEPT" onMismatch="DENY"/>
      </Filters>
      <AppenderRef ref="spark-ui-agent-{kind}"/>
    </Logger>"""
_FRAGMENT = """\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="FATAL">
  <Appenders>
{appenders}
  </Appenders>
  <Loggers>
{loggers}
  </Loggers>
</Configuration>
"""


def fragment(port: int, secret: str, bounds: Bounds, quiet: Mapping[str, str]) -> str:
    """The hook: posts the bind lines and "stopping" to our loopback port, waits for the answer, and nothing else.

    `quiet` holds the level of each hooked logger that the user keeps above INFO. Such a logger is raised to INFO with
    a filter that lets through what the user's level does and the hook's own lines. Any other logger inherits its
    level: nothing is added to the driver's log, nothing taken from it, and `setLogLevel` keeps its meaning.
    `status="FATAL"`: an agent that is away costs the driver's log no stack trace (a user's own, more talkative
    `status` wins over it).
    """
    rows = (("bound", UTILS, BOUND, bounds.bound), ("stopping", CONTEXT, STOPPING, bounds.stopping))
    appenders = [
        _APPENDER.format(
            kind=kind,
            port=port,
            connect=bounds.connect * 1000,
            read=read * 1000,
            header=HEADER,
            secret=secret,
            regex=regex,
            layout=LAYOUT,
        )
        for kind, _, regex, read in rows
    ]
    loggers = [
        (_RAISED if name in quiet else _INHERITING).format(
            name=name, kind=kind, level=quiet.get(name), regex=regex
        )
        for kind, name, regex, _ in rows
    ]
    return _FRAGMENT.format(appenders="\n".join(appenders), loggers="\n".join(loggers))
