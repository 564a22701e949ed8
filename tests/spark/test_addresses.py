"""UIs that cannot be told by their first port alone: behind TLS, and on the loopback."""

from __future__ import annotations

from tests.spark.lives import NAME
from tests.spark.short_lives import Hidden, Secure


def test_under_tls_the_port_that_serves_is_published_and_the_redirector_never(secure: Secure) -> None:
    assert (secure.published.fields["port"], secure.published.fields["scheme"]) == (secure.port, "https")
    assert secure.redirectors
    assert all(page.status == 302 for page in secure.redirected)
    led_to = {route for step in secure.changes.routed(secure.service) for route in step.routes}
    assert led_to == {(secure.ip, secure.port)}
    assert secure.page.status == 200
    assert NAME.encode() in secure.page.body


def test_a_ui_on_the_loopback_is_not_published_and_the_reason_is_told(hidden: Hidden) -> None:
    assert hidden.changes.services == []
    assert hidden.connections == [], "a listener on the loopback is never asked"
    assert (hidden.status["state"], hidden.status["reason"]) == ("blocked", "loopback")
    assert f"port {hidden.port} listens on 127.0.0.1 only" in str(hidden.status["found"])
    assert "SPARK_LOCAL_IP" in str(hidden.status["remedy"])
    listed = hidden.discovered["listeners"]
    assert isinstance(listed, list)
    [entry] = [entry for entry in listed if entry["port"] == hidden.port]
    assert entry["taken"] == "passed-over"
    assert "loopback" in entry["why"]
    assert hidden.exit_code == 0
