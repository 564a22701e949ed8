"""What each answer that a prober meets says about the listener."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.answers import BODY_MAX
from agent.decide.identify import judge
from agent.model import Answer, Listener, Question, Said, Scheme, Taken

from .senses import APPLICATION, applications

HTTP = Question(Listener(4040, "::", 185, 1, 1), Scheme.HTTP)
HTTPS = Question(Listener(4440, "::", 185, 2, 1), Scheme.HTTPS)
HTML = "text/html;charset=utf-8"
JSON = "application/json"


def page(status: int, body: bytes | str = b"", kind: str = JSON, location: str = "") -> Answer:
    return Answer(Said.HTTP, status, kind, location, body if isinstance(body, bytes) else body.encode())


def listed(*entries: object) -> Answer:
    return page(200, json.dumps(entries))


def entry(name: object = APPLICATION, **attempt: object) -> dict[str, object]:
    return {"id": name, "name": "n", "attempts": [{"completed": False, "endTimeEpoch": -1, **attempt}]}


ROWS: dict[str, tuple[Answer, Taken]] = {
    "ours": (listed(entry()), Taken.OURS),
    "starting up": (page(200, "Spark is starting up. Please wait...", HTML), Taken.STARTING),
    "404 html": (page(404, "<html>Not Found</html>", HTML), Taken.STARTING),
    "404 json of Jetty": (page(404, '{"status":"404"}'), Taken.STARTING),
    "404 bare": (page(404, b"", ""), Taken.STARTING),
    "404 unknown app": (page(404, "unknown app 4040", "text/plain"), Taken.NOT_SPARK),
    "302 to jobs": (page(302, b"", "", "http://127.0.0.1:4040/jobs/"), Taken.STARTING),
    "302 to jobs, relative": (page(302, b"", "", "/jobs/"), Taken.STARTING),
    "302 to jobs behind a proxy": (
        page(302, b"", "", "https://proxy.example/spark-aaa/jobs/"),
        Taken.STARTING,
    ),
    "302 to the TLS port": (
        page(302, b"", "", "https://127.0.0.1:4440/api/v1/applications"),
        Taken.REDIRECTOR,
    ),
    "302 to port 0": (page(302, b"", "", "https://h:0/"), Taken.REDIRECTOR),
    "302 to another name": (page(302, b"", "", "https://h:4440/api/v1/applications"), Taken.REDIRECTOR),
    "302 to IPv6": (page(302, b"", "", "https://[::1]:4440/api/v1/applications"), Taken.REDIRECTOR),
    "302 to a login": (page(302, b"", "", "https://sso.example/login?next=%2F"), Taken.FILTERED),
    "302 to a plain login": (page(307, b"", "", "http://sso.example/login"), Taken.FILTERED),
    "302 within": (page(302, b"", "", "/login"), Taken.STARTING),
    "302 without a place": (page(302), Taken.STARTING),
    "503": (page(503, b"", HTML), Taken.STARTING),
    "500": (page(500, b"", HTML), Taken.STARTING),
    "401": (page(401, b"", HTML), Taken.FILTERED),
    "403": (page(403, "<html>", HTML), Taken.FILTERED),
    "400": (page(400, b"", HTML), Taken.NOT_SPARK),
    "405": (page(405), Taken.NOT_SPARK),
    "200 text": (page(200, "hello", "text/plain"), Taken.NOT_SPARK),
    "200 no JSON": (page(200, "hello"), Taken.NOT_SPARK),
    "200 empty": (page(200), Taken.NOT_SPARK),
    "no application yet": (page(200, "[ ]"), Taken.STARTING),
    "id null": (listed(entry(None)), Taken.STARTING),
    "id missing": (listed({}), Taken.STARTING),
    "id a number": (listed(entry(4040)), Taken.NOT_SPARK),
    "id empty": (listed(entry("")), Taken.NOT_SPARK),
    "one other": (listed(entry("spark-bbb")), Taken.FOREIGN),
    "one local": (listed(entry("local-1700000000000")), Taken.FOREIGN),
    "two, ours among them": (listed(entry(), entry("spark-bbb")), Taken.MANY),
    "ours twice": (listed(entry(), entry()), Taken.MANY),
    "three, ours running": (listed(entry("a"), entry(), entry("b")), Taken.MANY),
    "ours completed": (listed(entry(completed=True)), Taken.MANY),
    "too long a list": (page(200, b"[" + b" " * BODY_MAX), Taken.MANY),
    "an object": (page(200, '{"id":"spark-aaa"}'), Taken.NOT_SPARK),
    "a list of text": (page(200, '["spark-aaa"]'), Taken.NOT_SPARK),
    "a list of lists": (page(200, '[["spark-aaa"]]'), Taken.NOT_SPARK),
    "deep": (page(200, b"[" * 60_000), Taken.NOT_SPARK),
    "deep and closed": (page(200, b"[" * 30_000 + b"]" * 30_000), Taken.NOT_SPARK),
    "huge number": (page(200, b"[" + b"9" * 60_000 + b"]"), Taken.NOT_SPARK),
    "a key twice": (page(200, '[{"id":"spark-bbb","id":"spark-aaa"}]'), Taken.NOT_SPARK),
    "no UTF-8": (page(200, b'[{"id":"\xff"}]'), Taken.NOT_SPARK),
    "half a pair": (page(200, '[{"id":"\\ud800"}]'), Taken.FOREIGN),
    "TLS alert": (Answer(Said.TLS_ALERT), Taken.SPEAKS_TLS),
    "time-out": (Answer(Said.TIMEOUT), Taken.SILENT),
    "refused": (Answer(Said.REFUSED), Taken.CLOSED),
    "EOF": (Answer(Said.EOF), Taken.NOT_SPARK),
    "reset": (Answer(Said.RESET), Taken.NOT_SPARK),
    "py4j, gRPC": (Answer(Said.NOT_HTTP), Taken.NOT_SPARK),
}


@pytest.mark.parametrize("name", ROWS)
def test_an_answer_is_taken_for_what_it_is(name: str) -> None:
    answer, taken = ROWS[name]

    verdict = judge(answer, HTTP, APPLICATION)

    assert verdict.taken is taken, verdict
    assert verdict.detail


@pytest.mark.parametrize("name", [name for name, (answer, _) in ROWS.items() if answer.said is Said.HTTP])
def test_over_tls_it_is_the_same_but_no_redirector(name: str) -> None:
    answer, taken = ROWS[name]

    over_tls = judge(answer, HTTPS, APPLICATION).taken

    assert over_tls is (Taken.FILTERED if taken is Taken.REDIRECTOR else taken)


def test_tls_that_fails_is_final_and_an_alert_means_a_client_certificate() -> None:
    assert judge(Answer(Said.TLS_FAILED), HTTPS, APPLICATION).taken is Taken.NOT_SPARK
    assert judge(Answer(Said.TLS_ALERT), HTTPS, APPLICATION).taken is Taken.FILTERED


def test_ours_names_the_application_and_its_start() -> None:
    verdict = judge(page(200, applications(APPLICATION)), HTTP, APPLICATION)

    assert (verdict.taken, verdict.application, verdict.started) == (Taken.OURS, APPLICATION, 1700000000000)


@pytest.mark.parametrize("odd", [None, "1700000000000", 1.7e12, True, -1, 2**63, [], {}])
def test_an_odd_start_is_not_known(odd: object) -> None:
    verdict = judge(listed(entry(startTimeEpoch=odd)), HTTP, APPLICATION)

    assert (verdict.taken, verdict.started) == (Taken.OURS, 0)


@pytest.mark.parametrize("attempts", [None, 5, "x", [], [None], [[]], {}])
def test_odd_attempts_do_not_matter(attempts: object) -> None:
    verdict = judge(listed({"id": APPLICATION, "attempts": attempts}), HTTP, APPLICATION)

    assert (verdict.taken, verdict.started) == (Taken.OURS, 0)


def test_without_an_id_of_our_own_nothing_is_ours() -> None:
    verdict = judge(listed(entry("spark-bbb")), HTTP, "")

    assert verdict.taken is Taken.FOREIGN
    assert verdict.application == "spark-bbb"
    assert judge(listed(entry("")), HTTP, "").taken is Taken.NOT_SPARK


def test_what_is_shown_of_a_foreign_answer_is_short_and_printable() -> None:
    verdict = judge(listed(entry("x\n\x1b[31m" + "y" * 500)), HTTP, APPLICATION)

    assert verdict.application is not None
    assert verdict.application.isprintable()
    assert len(verdict.application) <= 80
    assert verdict.detail.isprintable()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(APPLICATION),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "attempts", "completed", "startTimeEpoch", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


answers = st.builds(
    Answer,
    said=st.sampled_from(Said),
    status=st.sampled_from([200, 301, 302, 400, 401, 404, 500, 503]) | st.integers(100, 999),
    content_type=st.sampled_from([JSON, HTML, "", "text/plain", "APPLICATION/JSON; x"])
    | st.text(max_size=20),
    location=st.text(max_size=40) | st.from_regex(r"https?://[^/]{0,9}(:[0-9]{0,6})?/?.{0,9}"),
    body=st.binary(max_size=80) | json_values.map(json.dumps).map(str.encode),
)


@given(answers, st.sampled_from([HTTP, HTTPS]))
def test_no_answer_raises_and_only_one_kind_is_ours(answer: Answer, question: Question) -> None:
    verdict = judge(answer, question, APPLICATION)

    assert verdict.detail.isprintable()
    if verdict.taken is Taken.OURS:
        assert (answer.said, answer.status) == (Said.HTTP, 200)
        (only,) = json.loads(answer.body)
        assert only["id"] == APPLICATION
        assert verdict.application == APPLICATION
