"""Which of the pages that a client of a Service got were of the UIs that the Service is for."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.page import Page
from sandbox.spark.trace import Listener
from tests.e2e.client import Asked


def applications(page: Page) -> list[str]:
    """Return the names of the applications that a page lists; a UI that starts up answers, but lists none."""
    try:
        listed = page.json()
    except ValueError:
        return []
    return [str(one["name"]) for one in listed] if isinstance(listed, list) else []


def strays(asked: Sequence[Asked], name: str, uis: Sequence[Listener]) -> list[Asked]:
    """Return the requests whose page was not one of ``uis``, the sockets of the UIs of the application ``name``.

    A page that lists applications tells whose it is. One of a UI that starts up tells nothing: it can only be one of
    these UIs while one of them listens.
    """
    return [one for one in asked if one.page is not None and not _is_of(one, one.page, name, uis)]


def _is_of(asked: Asked, page: Page, name: str, uis: Sequence[Listener]) -> bool:
    listened = any(
        ui.seen_at <= asked.ended and (ui.closed_at is None or asked.at <= ui.closed_at) for ui in uis
    )
    return listened and set(applications(page)) <= {name}
