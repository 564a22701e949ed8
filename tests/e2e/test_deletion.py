"""``kubectl delete pod`` of a running driver: nobody meets a closed port but while kube-proxy has not heard."""

from __future__ import annotations

from tests.e2e.deletion import Deleted

SIGTERM_STATUS = 143
# how long the Pod may go on for the agent's sake, in seconds
LINGERS = 3


def test_no_endpoint_is_left_when_the_ui_closes(deleted: Deleted) -> None:
    assert deleted.deleted < deleted.parked < deleted.closed
    assert deleted.deleted < deleted.emptied < deleted.closed


def test_the_grace_period_is_not_used_up(deleted: Deleted) -> None:
    assert deleted.lingered <= LINGERS
    assert (deleted.driver["exitCode"], deleted.agent["exitCode"]) == (SIGTERM_STATUS, 0)


def test_no_request_reaches_a_closed_port_once_kube_proxy_knows(deleted: Deleted) -> None:
    assert [one for one in deleted.reached if one.opened_at > deleted.synced] == []


def test_the_client_asked_before_and_after(deleted: Deleted) -> None:
    assert any(one.page is not None and one.page.status == 200 for one in deleted.asked)
    assert any(one.at > deleted.synced for one in deleted.asked)
    assert any(one.opened_at < deleted.parked for one in deleted.reached)
