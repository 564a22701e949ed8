"""Whose a Service is, and which labels select our Pod alone."""

from __future__ import annotations

import pytest

from agent.decide.ownership import (
    Around,
    entry,
    holder,
    not_ours,
    others,
    pod_over,
    pod_owner,
    routes_here,
    selector,
)
from agent.model import Trouble
from tests.support.make import APP, LABELS, OTHER_APP, OWN, POD_UID, pod, port, service, settings

STATEFUL = {"statefulset.kubernetes.io/pod-name": "nb-0"}


@pytest.mark.parametrize(
    ("labels", "given", "app", "chosen"),
    [
        pytest.param(LABELS, "", APP, OWN, id="Spark's own"),
        pytest.param(LABELS, "uid-tag=drv-1", APP, {"uid-tag": "drv-1"}, id="the user's"),
        pytest.param(STATEFUL, "", APP, STATEFUL, id="a notebook of a StatefulSet"),
        pytest.param({**LABELS, **STATEFUL}, "", APP, OWN, id="Spark's before the StatefulSet's"),
        pytest.param(STATEFUL, "", "", STATEFUL, id="no application id"),
        pytest.param(None, "", APP, OWN, id="our Pod can't be read: as Spark labels it"),
        pytest.param(None, "a=b", APP, {"a": "b"}, id="our Pod can't be read: as the user says"),
        pytest.param(None, "", "", None, id="nothing is known"),
        pytest.param({"app": "nb"}, "", APP, None, id="no label of that kind"),
        pytest.param({"app": "nb"}, "app=x", APP, None, id="a value that our Pod does not have"),
        pytest.param({"app": "nb"}, "app=nb,b=c", APP, None, id="a key that our Pod does not have"),
        pytest.param(
            {**LABELS, "spark-app-selector": OTHER_APP}, "", APP, None, id="the label is not our id"
        ),
    ],
)
def test_the_selector(
    labels: dict[str, str] | None, given: str, app: str, chosen: dict[str, str] | None
) -> None:
    found = selector(settings(app=app, SELECTOR=given), None if labels is None else pod(labels))

    if chosen is None:
        assert isinstance(found, Trouble)
        assert found.code == "selector"
        assert "SPARK_UI_AGENT_SELECTOR" in found.remedy
    else:
        assert found == chosen


@pytest.mark.parametrize(
    ("mark", "found"),
    [(None, None), ("", None), ("drv-1", None), ("drv-1/u", ("drv-1", "u")), ("drv-1/u/x", ("drv-1", "u/x"))],
)
def test_the_holder_mark(mark: str | None, found: tuple[str, str] | None) -> None:
    live = service(annotations={} if mark is None else {"spark-ui-agent/holder": mark})

    assert holder(live) == found


BY_POD = {"apiVersion": "v1", "kind": "Pod", "name": "drv-0", "uid": "u0"}
BY_APP = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": "a", "uid": "u1"}


@pytest.mark.parametrize(
    ("owners", "found"),
    [
        ([], None),
        ([BY_POD], ("drv-0", "u0")),
        ([BY_APP], None),
        ([BY_POD, BY_APP], None),  # garbage collection waits for both
        ([{**BY_POD, "apiVersion": "example.com/v1"}], None),
    ],
)
def test_the_pod_with_which_a_service_goes(
    owners: list[dict[str, str]], found: tuple[str, str] | None
) -> None:
    assert pod_owner(service(metadata={"ownerReferences": owners})) == found


@pytest.mark.parametrize(
    ("there", "over"),
    [
        pytest.param(None, True, id="absent"),
        pytest.param({"metadata": {"uid": "u2"}, "status": {"phase": "Running"}}, True, id="another by now"),
        pytest.param({"metadata": {"uid": "u"}, "status": {"phase": "Running"}}, False, id="running"),
        pytest.param({"metadata": {"uid": "u"}, "status": {"phase": "Pending"}}, False, id="pending"),
        pytest.param({"metadata": {"uid": "u"}, "status": {"phase": "Succeeded"}}, True, id="succeeded"),
        pytest.param({"metadata": {"uid": "u"}, "status": {"phase": "Failed"}}, True, id="failed"),
        pytest.param({"metadata": {"uid": "u"}}, False, id="no status yet"),
        pytest.param(
            {"metadata": {"uid": "u", "deletionTimestamp": "x"}, "status": {"phase": "Running"}},
            False,
            id="being deleted, but its UI may still be up",
        ),
    ],
)
def test_when_a_pod_is_over(there: dict[str, object] | None, over: bool) -> None:
    assert pod_over(there, "u") is over


@pytest.mark.parametrize(
    ("chosen", "labels", "here"),
    [
        ({}, LABELS, False),
        (OWN, LABELS, True),
        ({"uid-tag": "drv-1"}, LABELS, True),
        ({"uid-tag": "drv-1", "x": "y"}, LABELS, False),
        ({"spark-ui-agent/parked": POD_UID}, LABELS, False),
        (OWN, None, True),
        ({"spark-role": "driver"}, None, True),
        ({"uid-tag": "drv-1"}, None, False),
    ],
)
def test_whether_a_service_leads_here(
    chosen: dict[str, str], labels: dict[str, str] | None, here: bool
) -> None:
    ours = None if labels is None else pod(labels)

    assert routes_here(service(selector=chosen), ours, OWN) is here


HELD = {"spark-ui-agent/holder": "drv-2/u2"}
MINE = {"spark-ui-agent/application": APP}
PARKED_BY_OTHER = {"spark-ui-agent/parked": "u2"}
OTHERS = {"spark-app-selector": OTHER_APP, "spark-role": "driver"}
HELD_BY_OTHER = {**HELD, "spark-ui-agent/application": OTHER_APP}


@pytest.mark.parametrize(
    ("live", "adopt", "gone", "code"),
    [
        pytest.param(service(selector=OWN), "own", False, None, id="selects our Pod"),
        pytest.param(service(selector={}, annotations=MINE), "own", False, None, id="selector-less, our id"),
        pytest.param(
            service(selector=PARKED_BY_OTHER, annotations=MINE), "own", False, None, id="parked, our id"
        ),
        pytest.param(
            service(selector={"spark-ui-agent/parked": POD_UID}), "own", False, None, id="parked for our Pod"
        ),
        pytest.param(service(selector=PARKED_BY_OTHER), "own", False, "adopt", id="parked, nobody's mark"),
        pytest.param(service(selector=PARKED_BY_OTHER), "any", False, None, id="parked, any is allowed"),
        pytest.param(service(selector={}), "own", False, "adopt", id="selector-less, no mark"),
        pytest.param(service(selector={}), "any", False, None, id="selector-less, any is allowed"),
        pytest.param(
            service(selector={"a": "b"}, annotations=MINE), "own", False, "adopt", id="our id, but in use"
        ),
        pytest.param(service(selector={"a": "b"}), "any", False, None, id="in use, any is allowed"),
        pytest.param(
            service(selector={"spark-app-selector": OTHER_APP}), "any", False, "foreign", id="never foreign"
        ),
        pytest.param(service(selector={}, annotations=HELD), "any", False, "holder", id="never while held"),
        pytest.param(
            service(selector=OWN, annotations=HELD), "own", False, "holder", id="held, though it leads here"
        ),
        pytest.param(
            service(selector=OWN, annotations=HELD), "own", True, None, id="the holder is known to be over"
        ),
        pytest.param(
            service(selector=PARKED_BY_OTHER, annotations=HELD),
            "own",
            True,
            "adopt",
            id="over, but not for us",
        ),
        pytest.param(
            service(selector=PARKED_BY_OTHER, annotations={**HELD, **MINE}),
            "own",
            True,
            None,
            id="a former Pod of our application is over",
        ),
        pytest.param(
            service(selector=OTHERS, annotations=HELD_BY_OTHER), "any", True, None, id="left by a dead holder"
        ),
        pytest.param(
            service(selector=OTHERS, annotations=HELD_BY_OTHER),
            "own",
            True,
            "adopt",
            id="left by a dead holder, but any is not allowed",
        ),
        pytest.param(
            service(selector=OTHERS, annotations=HELD_BY_OTHER),
            "any",
            False,
            "foreign",
            id="another application's, whose holder is not known to be over",
        ),
        pytest.param(
            service(selector=OTHERS, annotations={"spark-ui-agent/application": OTHER_APP}),
            "any",
            False,
            "foreign",
            id="another application's, and no holder's",
        ),
        pytest.param(
            service(selector={**OTHERS, "spark-app-selector": "spark-ccc"}, annotations=HELD_BY_OTHER),
            "any",
            True,
            "foreign",
            id="made to select a third application since its holder's end",
        ),
        pytest.param(
            service(selector=OTHERS, annotations=HELD),
            "any",
            True,
            "foreign",
            id="selects an application that is not known to be the dead holder's",
        ),
        pytest.param(
            service(
                selector=OTHERS,
                annotations=HELD_BY_OTHER,
                metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
            ),
            "any",
            True,
            "service",
            id="left by a dead holder, but being deleted",
        ),
    ],
)
def test_whose_a_service_is(live: dict[str, object], adopt: str, gone: bool, code: str | None) -> None:
    around = Around(pod=pod(), holder_gone=gone)
    here = routes_here(live, pod(), OWN)

    found = not_ours(live, settings(ADOPT=adopt), around, here=here, marked=False)

    assert (found.code if found else None) == code


def test_an_empty_application_id_is_nobodys_mark() -> None:
    live = service(selector={}, annotations={"spark-ui-agent/application": ""})

    found = not_ours(live, settings(app=""), Around(pod=pod()), here=False, marked=False)

    assert found is not None
    assert found.code == "adopt"


def test_a_service_that_carries_our_mark_is_ours_but_not_once_it_selects_another_application() -> None:
    mine = service(selector={"a": "b"})
    lost = service(selector={"spark-app-selector": OTHER_APP})

    assert not_ours(mine, settings(), Around(pod=pod()), here=False, marked=True) is None
    assert not_ours(lost, settings(), Around(pod=pod()), here=False, marked=True) is not None


def test_the_entry_of_several_with_no_name_that_fits_is_none() -> None:
    live = service(ports=[port(1, name="a", number=1), port(2, name="b", number=2)])

    assert entry(live, settings()) is None
    assert entry(live, settings(PORT_NAME="b")) == 1
    assert entry(live, settings(EXPOSE="1")) == 0


@pytest.mark.parametrize(
    ("ports", "names"),
    [
        pytest.param([port(1)], set(), id="the only one is the UI's"),
        pytest.param(
            [port(1, name="spark-ui"), port(2, name="rpc", number=7078)], {"rpc"}, id="beside the UI's"
        ),
        pytest.param(
            [port(1, name="a", number=1), port(2, name="b", number=2)], {"a", "b"}, id="none is the UI's"
        ),
    ],
)
def test_the_entries_that_are_not_the_uis(ports: list[dict[str, object]], names: set[str]) -> None:
    assert others(service(ports=ports), settings()) == names
