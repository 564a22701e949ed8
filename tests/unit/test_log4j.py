"""The driver's logging: whose file counts, Spark's default in our words, the hook's fragment, and its posts."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.hookpost import BOUND, CONTEXT, HEADER, STOPPING, UTILS, Bound, Stopping, parse
from agent.decide.log4j import Bounds, base, fillers, format_of, fragment, includes, users_file

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("names", "chosen", "form"),
    [
        (["log4j2.xml", "log4j2.properties"], "log4j2.properties", "properties"),
        (["log4j2.xml", "log4j2.json", "log4j2.yaml"], "log4j2.yaml", "yaml"),
        (["log4j2.yaml", "log4j2.yml"], "log4j2.yml", "yaml"),
        (["log4j2.xml", "log4j2.jsn"], "log4j2.jsn", "json"),
        (["log4j2.properties", "log4j2-test.xml"], "log4j2-test.xml", "xml"),
        (["spark.properties", "log4j2.xml"], "log4j2.xml", "xml"),
    ],
)
def test_whose_file_counts(names: list[str], chosen: str, form: str) -> None:
    assert users_file(names) == chosen
    assert format_of(chosen) == form


@pytest.mark.parametrize("names", [[], ["log4j.properties", "log4j2.properties.template", "LOG4J2.XML"]])
def test_no_file_of_the_users(names: list[str]) -> None:
    assert users_file(names) is None


def test_files_taken_in() -> None:
    text = (
        '<C xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="parts.xml"/>'
        '<xi:include parse="xml" href = \'more-1.xml\' /><xi:include href="../up.xml"/>'
        '<xi:include href="hook.xml"/><xi:include href=".hidden.xml"/><xi:include href="hook.json"/></C>'
    )
    assert includes(text) == ["parts.xml", "more-1.xml"]


def test_places_after_a_file_with_a_status_are_filled() -> None:
    assert fillers("log4j2.xml", "<Configuration/>") == {}
    assert list(fillers("log4j2.json", '{"configuration": {"status": "warn"}}')) == ["hook.xml"]
    filled = fillers("log4j2.properties", "status = warn")
    assert list(filled) == ["log4j2.xml", "log4j2.yaml", "log4j2.json", "hook.xml"]
    assert json.loads(filled["log4j2.json"]) == {"configuration": {}}
    assert len(ElementTree.fromstring(filled["log4j2.xml"])) == 0


def test_the_base_is_well_formed_and_logs_to_stderr() -> None:
    for structured in (False, True):
        tree = ElementTree.fromstring(base(structured=structured))
        assert tree.get("status") is None
        consoles = list(tree.iter("Console"))
        assert {one.get("target") for one in consoles} == {"SYSTEM_ERR"}
        assert {one.get("name") for one in consoles} == {"console"}
        assert (tree.find(".//JsonTemplateLayout") is not None) == structured
        root = tree.find("Loggers/Root")
        assert root is not None
        assert root.get("level") == "info"


def hook(quiet: dict[str, str] | None = None, timeout: float = 2.0) -> ElementTree.Element:
    return ElementTree.fromstring(fragment(20001, SECRET, Bounds.of(timeout), quiet or {}))


def test_the_hook_is_silent_about_itself_and_posts_two_lines() -> None:
    tree = hook()
    assert tree.get("status") == "FATAL"
    appenders = {str(one.get("name")): one for one in tree.iter("Http")}
    assert sorted(appenders) == ["spark-ui-agent-bound", "spark-ui-agent-stopping"]
    for appender in appenders.values():
        assert appender.get("url") == "http://127.0.0.1:20001/"
        header = appender.find("Property")
        assert header is not None
        assert (header.get("name"), header.get("value")) == (HEADER, SECRET)
        regex = appender.find("RegexFilter")
        assert regex is not None
        assert (regex.get("onMatch"), regex.get("onMismatch")) == ("ACCEPT", "DENY")
    loggers = {str(one.get("name")): one for one in tree.iter("Logger")}
    refs = {name: [ref.get("ref") for ref in one.iter("AppenderRef")] for name, one in loggers.items()}
    assert refs == {UTILS: ["spark-ui-agent-bound"], CONTEXT: ["spark-ui-agent-stopping"]}


def test_a_logger_that_hears_info_keeps_its_level_and_all_its_lines() -> None:
    for logger in hook().iter("Logger"):
        assert logger.get("level") is None
        assert logger.get("additivity") is None
        assert logger.find(".//ThresholdFilter") is None


def test_a_quiet_logger_is_raised_for_the_hooks_lines_alone() -> None:
    loggers = {str(one.get("name")): one for one in hook({CONTEXT: "ERROR"}).iter("Logger")}
    assert loggers[UTILS].get("level") is None
    raised = loggers[CONTEXT]
    assert raised.get("level") == "info"
    filters = raised.find("Filters")
    assert filters is not None
    assert [(one.tag, one.get("onMatch"), one.get("onMismatch")) for one in filters] == [
        ("ThresholdFilter", "ACCEPT", "NEUTRAL"),
        ("RegexFilter", "ACCEPT", "DENY"),
    ]
    assert filters[0].get("level") == "ERROR"
    assert filters[1].get("regex") == STOPPING


@given(st.floats(min_value=0.1, max_value=30))
def test_the_driver_waits_no_longer_than_it_may_and_longer_than_we_take(timeout: float) -> None:
    bounds = Bounds.of(timeout)
    assert bounds.connect + bounds.stopping <= timeout + 1e-9
    assert bounds.connect + bounds.bound <= timeout + 1e-9
    assert 0 < bounds.answer < bounds.stopping
    for appender in hook(timeout=timeout).iter("Http"):
        # log4j2 takes 0 for "no time-out".
        assert int(str(appender.get("connectTimeoutMillis"))) >= 1
        assert int(str(appender.get("readTimeoutMillis"))) >= 1


@pytest.mark.parametrize(
    ("message", "post"),
    [
        ("Successfully started service 'SparkUI' on port 4040.", Bound(42, 4040, https=False)),
        ("Successfully started service 'SparkUI (HTTPS)' on port 4440.", Bound(42, 4440, https=True)),
        ("Successfully started service 'SparkUI' on port 0.", None),
        ("Successfully started service 'SparkUI' on port 65536.", None),
        ("Successfully started service 'SparkUI' on port 4040.\nx", None),
        ("Successfully started service 'SparkUI2' on port 4040.", None),
        ("Successfully started service 'sparkDriver' on port 7078.", None),
        ("x Successfully started service 'SparkUI' on port 4040.", None),
        ("Successfully started service 'SparkUI' on port -1.", None),
        ("Successfully started service 'SparkUI' on port 4040", None),
    ],
)
def test_bind_lines(message: str, post: Bound | None) -> None:
    assert parse(f"42 {UTILS} {message}".encode()) == post
    assert parse(f"42 {CONTEXT} {message}".encode()) is None


@pytest.mark.parametrize(
    ("message", "heard"),
    [
        ("SparkContext is stopping with exitCode 0.", True),
        ("SparkContext is stopping with exitCode 1 from run at Method.java:0.", True),
        ("SparkContext is stopping with exitCode -1 from a\nb.", True),
        ("SparkContext already stopped.", False),
        ("SparkContext is stopping", False),
        (" SparkContext is stopping with exitCode 0.", False),
    ],
)
def test_stopping_lines(message: str, heard: bool) -> None:
    assert parse(f"7 {CONTEXT} {message}".encode()) == (Stopping(7) if heard else None)
    assert parse(f"7 {UTILS} {message}".encode()) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"42",
        b"\xff\xfe",
        f"-1 {CONTEXT} SparkContext is stopping with exitCode 0.".encode(),
        f"99999999999 {CONTEXT} SparkContext is stopping with exitCode 0.".encode(),
        f"\u0664 {CONTEXT} SparkContext is stopping with exitCode 0.".encode(),
        f"1 {UTILS} Successfully started service 'SparkUI' on port \u0664\u0660.".encode(),
        f"1  {CONTEXT} SparkContext is stopping with exitCode 0.".encode(),
        b"1 org.apache.spark.SparkContext2 SparkContext is stopping with exitCode 0.",
    ],
)
def test_anything_else_is_no_post(body: bytes) -> None:
    assert parse(body) is None


@given(st.binary(max_size=300))
def test_parsing_never_raises(body: bytes) -> None:
    assert parse(body) is None


def test_the_filters_of_the_fragment_survive_xml() -> None:
    regexes = {str(one.get("regex")) for one in hook().iter("RegexFilter")}
    assert regexes == {BOUND, STOPPING}
    assert re.fullmatch(BOUND, "Successfully started service 'SparkUI (HTTPS)' on port 4440.")
