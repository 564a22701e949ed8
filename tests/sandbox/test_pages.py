"""What tells a stranger's page from one's own, beside a client that asks in a loop."""

from __future__ import annotations

import json

import pytest

from sandbox.page import Page
from sandbox.spark.sockdiag import Socket
from sandbox.spark.trace import Listener
from tests.e2e.client import Asked
from tests.e2e.pages import strays

STARTING = Page(200, {"content-type": "text/html"}, b"<p>Spark is starting up. Please wait...</p>")
NOT_FOUND = Page(404, {}, b"")
OWN, OTHERS = (Page(200, {}, json.dumps([{"name": name}]).encode()) for name in ("left", "right"))
NONE = Page(200, {}, b"[ ]")


def ui(seen_at: int, closed_at: int | None) -> Listener:
    socket = Socket(2, "0.0.0.0", 4040, 0, 185, 1, 1, "c")
    return Listener(socket, seen_at, closed_at)


def stray(page: Page | None, at: int, ended: int, *uis: Listener) -> bool:
    return bool(strays([Asked(at, ended, page)], "left", uis))


@pytest.mark.parametrize("page", [STARTING, NOT_FOUND, OWN, NONE])
def test_a_page_is_ones_own_while_a_ui_of_ones_own_listens(page: Page) -> None:
    assert not stray(page, 20, 30, ui(10, 40))
    assert not stray(page, 20, 30, ui(10, None))
    assert not stray(page, 5, 30, ui(10, None)), "it began before, and was answered after"
    assert not stray(page, 39, 50, ui(10, 40)), "it was under way when the UI closed"
    assert not stray(page, 70, 80, ui(10, 40), ui(60, 90)), "of the second context"


@pytest.mark.parametrize("page", [STARTING, NOT_FOUND, OWN, NONE])
def test_a_page_while_no_ui_of_ones_own_listens_is_a_strangers(page: Page) -> None:
    assert stray(page, 1, 9, ui(10, 40))
    assert stray(page, 41, 50, ui(10, 40), ui(60, 90))
    assert stray(page, 1, 2)


def test_a_page_that_lists_another_application_is_a_strangers_at_any_time() -> None:
    assert stray(OTHERS, 20, 30, ui(10, 40))
    both = Page(200, {}, json.dumps([{"name": "left"}, {"name": "right"}]).encode())
    assert stray(both, 20, 30, ui(10, 40))


def test_no_page_is_no_strangers() -> None:
    assert not stray(None, 50, 60, ui(10, 40))
