"""The log: one line for each event, in both forms, without secrets."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tell import logs

TOKEN = "eyJhbGciOi.JSUzI1NiI.c2lnbmF0dXJl"


@pytest.fixture(autouse=True)
def _root_logger() -> Iterator[None]:
    """Leaves the process's logging as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


class Broken(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_line() -> None:
    out = io.StringIO()
    log = logs.configure("info", "json", out)
    log.info("published", port=40123, hook=None, slow=0.5, ok=True, where={"a": 1})
    (line,) = lines(out)
    assert line.pop("timestamp")
    assert line == {
        "event": "published",
        "level": "info",
        "port": 40123,
        "hook": None,
        "slow": 0.5,
        "ok": True,
        "where": "{'a': 1}",
    }


@pytest.mark.parametrize(("level", "written"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_levels(level: str, written: int) -> None:
    out = io.StringIO()
    log = logs.configure(level, "json", out)
    log.debug("d")
    log.info("i")
    log.warning("w")
    log.error("e")
    assert [line["event"] for line in lines(out)] == ["d", "i", "w", "e"][4 - written :]


def test_auto_is_console_on_a_terminal_and_json_elsewhere() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    logs.configure("info", "auto", terminal).info("published", port=1)
    logs.configure("info", "auto", pipe).info("published", port=1)
    assert "published" in terminal.getvalue()
    assert not terminal.getvalue().startswith("{")
    assert pipe.getvalue().startswith("{")


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_secret_is_never_written(form: str) -> None:
    out = io.StringIO()
    log = logs.configure("debug", form, out)
    logs.hide(TOKEN + "\n")
    quoted = 'pass"word\\12345'
    logs.hide(quoted)
    log.info(f"Bearer {TOKEN}", header=f"Bearer {TOKEN}", nested={"a": [TOKEN]}, raw=TOKEN.encode())
    log.info("quoted", as_is=quoted, as_json=json.dumps({"key": quoted}))
    try:
        raise ValueError(f"bad header {TOKEN}")
    except ValueError:
        log.exception("failed")
    logging.getLogger("aiohttp").error("sent %s", TOKEN)
    assert TOKEN not in out.getvalue()
    assert "12345" not in out.getvalue()
    assert out.getvalue().count("[hidden]") == 8


def test_short_texts_are_no_secrets_and_the_newest_32_are_kept() -> None:
    out = io.StringIO()
    log = logs.configure("info", "json", out)
    logs.hide("port")
    logs.hide("")
    for number in range(40):
        logs.hide(f"rotated-token-{number:02}")
    log.info("port", old="rotated-token-07", new="rotated-token-08")
    (line,) = lines(out)
    assert (line["event"], line["old"], line["new"]) == ("port", "rotated-token-07", "[hidden]")


@pytest.mark.parametrize("form", ["json", "console"])
@given(text=st.text(max_size=3000))
def test_one_event_is_one_line_whatever_it_holds(form: str, text: str) -> None:
    out = io.StringIO()
    log = logs.configure("info", form, out)
    log.info(text, value=text)
    assert len(out.getvalue().splitlines()) == 1
    assert out.getvalue().endswith("\n")
    assert out.getvalue()[:-1].isprintable()
    assert len(out.getvalue()) < 14_000


def test_an_error_is_one_line_with_its_place() -> None:
    out = io.StringIO()
    log = logs.configure("info", "json", out)
    try:
        int("x")
    except ValueError:
        log.exception("failed")
    log.error("failed", exc_info=KeyError("a"))
    first, second = lines(out)
    assert str(first["error"]).startswith("ValueError: invalid literal")
    assert "test_logs.py:" in str(first["at"])
    assert second["error"] == "KeyError: 'a'"
    assert "at" not in second


def test_other_libraries_speak_from_warning_up_in_the_same_form() -> None:
    out = io.StringIO()
    logs.configure("debug", "json", out)
    other = logging.getLogger("kubernetes_asyncio.client.rest")
    other.info("response body: ...")
    other.warning("retry %d", 1)
    other.warning("bad %d arguments", "x")
    try:
        int("x")
    except ValueError:
        logging.getLogger("asyncio").error("Task exception\nwas never retrieved", exc_info=True)
    assert [(line["event"], line["level"], line["logger"]) for line in lines(out)] == [
        ("retry 1", "warning", "kubernetes_asyncio.client.rest"),
        ("bad %d arguments", "warning", "kubernetes_asyncio.client.rest"),
        ("Task exception\\nwas never retrieved", "error", "asyncio"),
    ]
    assert str(lines(out)[-1]["error"]).startswith("ValueError")


def test_a_broken_stream_ends_nothing() -> None:
    log = logs.configure("info", "json", Broken())
    log.info("published")
    closed = io.StringIO()
    log = logs.configure("info", "json", closed)
    closed.close()
    log.info("published")
    assert closed.closed
