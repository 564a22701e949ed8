"""What the answer to `GET /api/v1/applications` says about the listener that gave it."""

from __future__ import annotations

import json
import re

from ..model import Answer, Question, Said, Scheme, Taken, Verdict

PATH = "/api/v1/applications"
BODY_MAX = 65536  # bytes; a driver's own list takes about 600

_LOCATION = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]*\]|[^/:?#]*)(?::\d*)?([^?#]*)", re.IGNORECASE)


def judge(answer: Answer, question: Question, application: str) -> Verdict:
    """What `answer` says about the listener, when `application` is this Pod's id ("" when not known).

    The answer is hostile input: nothing in it raises.
    """
    match answer.said:
        case Said.HTTP:
            return _judge_http(answer, question, application)
        case Said.TLS_ALERT if question.scheme is Scheme.HTTP:
            return Verdict(Taken.SPEAKS_TLS, "answers plain HTTP with a TLS alert")
        case Said.TLS_ALERT:
            return Verdict(Taken.FILTERED, "ends TLS with an alert: it may want a client certificate")
        case Said.TIMEOUT:
            return Verdict(Taken.SILENT, "no whole answer in time")
        case Said.REFUSED:
            return Verdict(Taken.CLOSED, "refuses connections")
        case Said.TLS_FAILED:
            return Verdict(Taken.NOT_SPARK, "speaks no TLS that we know")
        case Said.NOT_HTTP:
            return Verdict(Taken.NOT_SPARK, "speaks no HTTP/1")
        case Said.EOF | Said.RESET:
            # A debugger and Netty do this and log each question, a living UI does not: never again.
            return Verdict(Taken.NOT_SPARK, "closes the connection without an answer")


def _judge_http(answer: Answer, question: Question, application: str) -> Verdict:
    kind = answer.content_type.partition(";")[0].strip().lower()
    status = answer.status
    if status in (401, 403):
        return Verdict(Taken.FILTERED, f"answers {status}")
    if status in (301, 302, 303, 307, 308):
        return _judge_redirect(answer.location, question)
    if status >= 500:
        return Verdict(Taken.STARTING, f"answers {status}")
    if status == 404 and kind != "text/plain":
        return Verdict(Taken.STARTING, "answers 404: the REST API is not there yet")
    if status == 200 and kind == "text/html":
        return Verdict(Taken.STARTING, "answers with a page: the REST API is not there yet")
    if status == 200 and kind in ("application/json", ""):
        return _judge_body(answer.body, application)
    return Verdict(Taken.NOT_SPARK, f"answers {status} {_printable(kind)}".rstrip())


def _judge_redirect(location: str, question: Question) -> Verdict:
    """Where it points is never trusted for a port: with spark.ui.port=0 old versions say port 0."""
    parts = _LOCATION.match(location)
    scheme, host, path = (
        (parts[1].lower(), parts[2].strip("[]"), parts[3]) if parts else ("", "", location.partition("?")[0])
    )
    if path.rstrip("/").endswith("/jobs"):
        return Verdict(Taken.STARTING, "redirects to /jobs/: the REST API is not there yet")
    if scheme == "https" and question.scheme is Scheme.HTTP:
        local = host.lower() in ("127.0.0.1", "::1", "localhost", question.listener.address)
        if local or path in (PATH, "", "/"):
            return Verdict(Taken.REDIRECTOR, "only points at its TLS port")
    if not scheme:
        return Verdict(Taken.STARTING, "redirects within itself: the REST API is not there yet")
    return Verdict(Taken.FILTERED, f"redirects to {_printable(host)}, perhaps to log in")


def _judge_body(body: bytes, application: str) -> Verdict:
    if len(body) >= BODY_MAX:
        return Verdict(Taken.MANY, f"lists {BODY_MAX} bytes and more: a History Server")
    try:
        listed = json.loads(body, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return Verdict(Taken.NOT_SPARK, "answers 200 with what is no JSON")
    if not isinstance(listed, list):
        return Verdict(Taken.NOT_SPARK, "answers 200 with JSON that is no list")
    if not listed:
        return Verdict(Taken.STARTING, "lists no application yet")
    if len(listed) > 1:
        return Verdict(Taken.MANY, f"lists {len(listed)} applications: a History Server")
    entry = listed[0]
    if not isinstance(entry, dict):
        return Verdict(Taken.NOT_SPARK, "lists something that is no application")
    return _judge_entry(entry, application)


def _judge_entry(entry: dict[str, object], application: str) -> Verdict:
    found = entry.get("id")
    if found is None:
        return Verdict(Taken.STARTING, "its application has no id yet")
    if not isinstance(found, str) or not found:
        return Verdict(Taken.NOT_SPARK, "lists an application whose id is no text")
    listed = entry.get("attempts")
    attempts = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    shown = _printable(found)
    if any(one.get("completed") is True for one in attempts):
        return Verdict(
            Taken.MANY, f"lists {shown} as completed, which no driver does: a History Server", shown
        )
    if found != application:
        own = f"this Pod's is {application}" if application else "this Pod's is not known"
        return Verdict(Taken.FOREIGN, f"shows application {shown}, {own}", shown)
    started = [
        epoch
        for one in attempts
        if isinstance(epoch := one.get("startTimeEpoch"), int) and 0 < epoch < 2**63 and epoch is not True
    ]
    return Verdict(Taken.OURS, f"shows application {shown}", found, max(started, default=0))


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:80])
