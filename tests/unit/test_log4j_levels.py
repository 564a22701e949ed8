"""A user's own levels in all four formats: what is surely above INFO, and what is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.hookpost import CONTEXT, UTILS
from agent.decide.loglevels import above_info, read_properties
from agent.decide.yamlsubset import read_yaml

BOTH = (UTILS, CONTEXT)


def both(level: str) -> dict[str, str]:
    return {UTILS: level, CONTEXT: level}


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("rootLogger.level = warn", both("WARN")),
        ("rootLogger.level: ERROR\nrootLogger.appenderRef.a.ref=a", both("ERROR")),
        ("rootLogger.level off", both("OFF")),
        ("rootLogger = warn, console", both("WARN")),
        ("rootLogger=\\\n  fatal,\\\n  console", both("FATAL")),
        ("rootLogger.level = info", {}),
        ("rootLogger.level = debug", {}),
        ("rootLogger.level = loud", {}),
        ("", {}),
        ("#rootLogger.level = warn\n!rootLogger.level = warn", {}),
        ("property.l = warn\nrootLogger.level = ${l}", both("WARN")),
        ("rootLogger.level = ${env:LEVEL:-warn}", {}),
        ("rootLogger.level = ${unknown}", {}),
        ("rootLogger.level=warn\nlogger.s.name=org.apache.spark\nlogger.s.level=info", {}),
        ("rootLogger.level=info\nlogger.s.name=org.apache.spark\nlogger.s.level=warn", both("WARN")),
        ("rootLogger.level=info\nlogger.s.name=org.apache.spark\nlogger.s=error, console", both("ERROR")),
        ("rootLogger.level=info\nlogger.s.name=org.apache.spar\nlogger.s.level=warn", {}),
        (
            "rootLogger.level=warn\nlogger.s.name=org.apache.spark.SparkContext\nlogger.s.level=debug",
            {UTILS: "WARN"},
        ),
        (
            "rootLogger.level=warn\nlogger.s.name=org.apache.spark\nlogger.s.additivity=false",
            both("WARN"),
        ),
    ],
)
def test_properties(content: str, found: dict[str, str]) -> None:
    assert above_info(content, "properties", BOTH) == found


def xml(loggers: str, before: str = "") -> str:
    return f"<?xml version='1.0'?><Configuration status='WARN'>{before}<Loggers>{loggers}</Loggers></Configuration>"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (xml("<Root level='warn'/>"), both("WARN")),
        (xml("<root LEVEL='Error'><AppenderRef ref='a'/></root>"), both("ERROR")),
        (xml("<AsyncRoot level='warn'/>"), both("WARN")),
        (xml("<Root level='info'/>"), {}),
        (xml("<Root/>"), {}),
        (xml("<!-- <Root level='warn'/> --><Root level='info'/>"), {}),
        (xml("<Root level='warn'/><Logger name='org.apache.spark' level='info'/>"), {}),
        (xml("<Root level='info'/><AsyncLogger name='org.apache' level='off'/>"), both("OFF")),
        (
            xml("<Root level='${l}'/>", "<Properties><Property name='l'>warn</Property></Properties>"),
            both("WARN"),
        ),
        (
            xml("<Root level='${l}'/>", "<Properties><Property name='l' value='error'/></Properties>"),
            both("ERROR"),
        ),
        (xml("<Root level='${sys:l:-warn}'/>"), {}),
        (xml("<Select><DefaultArbiter><Root level='warn'/></DefaultArbiter></Select>"), {}),
        (xml("<xi:include href='x.xml'/><Root level='warn'/>"), {}),
        (xml("<Root level='warn'/>")[:-5], {}),
        ("<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>" + xml("<Root level='&e;'/>")[21:], {}),
        ("", {}),
    ],
)
def test_xml(content: str, found: dict[str, str]) -> None:
    assert above_info(content, "xml", BOTH) == found


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"configuration": {"loggers": {"root": {"level": "warn"}}}}', both("WARN")),
        ('{"Configuration": {"Loggers": {"Root": {"level": "WARN"}}}}', both("WARN")),
        ('/* "a" */ {"configuration": // warn\n {"loggers": {"root": {"level": "info"}}}}', {}),
        (
            '{"configuration": {"properties": {"u": "http://x/*"}, "loggers": {"root": {"level": "warn"}}}}',
            both("WARN"),
        ),
        (
            '{"configuration": {"loggers": {"root": {"level": "info"}, '
            '"logger": [{"name": "x"}, {"name": "org.apache.spark", "level": "error"}]}}}',
            both("ERROR"),
        ),
        (
            '{"configuration": {"loggers": {"root": {"level": "warn"}, '
            '"logger": {"name": "org.apache.spark.util", "level": "info"}}}}',
            {CONTEXT: "WARN"},
        ),
        ('{"configuration": {"loggers": {"root": {"level": 5}}}}', {}),
        ('{"configuration": {"loggers": {"root": "warn"}}}', {}),
        ('{"configuration": {"loggers": {"Select": {}, "root": {"level": "warn"}}}}', {}),
        ('{"configuration": []}', {}),
        ("[" * 100_000, {}),
        ("", {}),
    ],
)
def test_json(content: str, found: dict[str, str]) -> None:
    assert above_info(content, "json", BOTH) == found


YAML = """\
---
# Configuration: none
Configuration:
  status: warn   # of log4j itself
  Appenders:
    Console:
      name: c
      PatternLayout:
        pattern: "%d # %m%n: x"
  Loggers:
    logger:
      -
        name: org.apache.spark.util
        level: info
      - name: org.apache.hadoop
        level: error
        AppenderRef: {ref: c}
    Root:
      level: 'warn'
      AppenderRef:
      - ref: c
      - ref: d
"""


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (YAML, {CONTEXT: "WARN"}),
        (YAML.replace("'warn'", "info"), {}),
        (YAML.replace("org.apache.hadoop", "org.apache"), {CONTEXT: "ERROR"}),
        (YAML.replace("  status", "\tstatus"), {}),
        (YAML.replace("'warn'", "&x warn"), {}),
        (YAML.replace("'warn'", "|\n        warn"), {}),
        (YAML + "    - odd\n", {}),
        ("Configuration: {Loggers: {Root: {level: warn}}}", {}),
        ("- a\n- b", {}),
        ("", {}),
    ],
)
def test_yaml(content: str, found: dict[str, str]) -> None:
    assert above_info(content, "yaml", BOTH) == found


@pytest.mark.parametrize("form", ["properties", "xml", "yaml", "json"])
def test_reading_never_raises(form: str) -> None:
    @given(st.text(alphabet=" \n\t:-#{}[]<>/\"'=!,aRootlevewrn$\\", max_size=80))
    def anything(content: str) -> None:
        assert set(above_info(content, form, BOTH)) <= set(BOTH)

    anything()


def test_properties_in_general() -> None:
    text = "a = 1\nb=2\\\n  3\n c:4\nd 5\ne\nf = x=y\n# g = 6\nh = C:\\\\\n"
    assert read_properties(text) == {
        "a": "1",
        "b": "23",
        "c": "4",
        "d": "5",
        "e": "",
        "f": "x=y",
        "h": "C:\\\\",
    }


def test_yaml_in_general() -> None:
    assert read_yaml("a:\n- x\n- b: 1\n  c: 2\nd: ''") == {"a": ["x", {"b": "1", "c": "2"}], "d": ""}
