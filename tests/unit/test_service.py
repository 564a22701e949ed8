"""From the live Service and what is wanted to the one step between them: bodies exactly as they go out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from agent.decide.ownership import CREATED_BY, Around
from agent.decide.service import Create, Delete, Nothing, Patch, Refuse, Step, plan
from agent.model import Park, Proof, Release, Scheme, Serve, Trouble
from tests.support.make import APP, OTHER_APP, OWN, POD, POD_UID, Object, pod, port, service, settings

SERVE = Serve(45123, Scheme.HTTP, APP, Proof.REST)
PARK = Park(Trouble("stopped", "the UI has closed", "none needed"))
RELEASE = Release(Trouble("driver-ended", "Completed", "none needed"))
AROUND = Around(pod=pod())
EMPTY = replace(AROUND, empty=True)
HOLDER = f"{POD}/{POD_UID}"
PARKED = {"spark-ui-agent/parked": POD_UID}

PUBLISHED: dict[str, str] = {
    "spark-ui-agent/holder": HOLDER,
    "spark-ui-agent/state": "published",
    "spark-ui-agent/port": "45123",
    "spark-ui-agent/scheme": "http",
    "spark-ui-agent/application": APP,
}
WITHDRAWN = {
    "spark-ui-agent/holder": HOLDER,
    "spark-ui-agent/state": "parked",
    "spark-ui-agent/application": APP,
}
READ: Object = {"resourceVersion": "10", "uid": "uid-of-ui"}


def together(*parts: Mapping[str, object]) -> Object:
    return {key: value for part in parts for key, value in part.items()}


def test_publishing_is_one_patch_with_selector_and_the_whole_list_of_ports() -> None:
    live = service(selector={}, annotations={"spark-ui-agent/application": APP, "team": "x"})

    assert plan(live, SERVE, settings(), AROUND) == Patch(
        "ui",
        {
            "metadata": {
                **READ,
                "annotations": {
                    "spark-ui-agent/holder": HOLDER,
                    "spark-ui-agent/state": "published",
                    "spark-ui-agent/port": "45123",
                    "spark-ui-agent/scheme": "http",
                },
            },
            "spec": {
                "selector": OWN,
                "ports": [{"name": "http-ui", "port": 80, "protocol": "TCP", "targetPort": 45123}],
            },
        },
    )


def test_foreign_keys_of_the_selector_are_nulled() -> None:
    live = service(selector={"old": "1", "spark-role": "driver"})

    step = plan(live, SERVE, settings(ADOPT="any"), AROUND)

    assert isinstance(step, Patch)
    assert step.body["spec"] == {
        "selector": {"old": None, "spark-role": "driver", "spark-app-selector": APP},
        "ports": [port(45123)],
    }


def test_parking_replaces_the_selector_and_leaves_the_ports_alone() -> None:
    live = service(selector=OWN, ports=[port(45123)], annotations=PUBLISHED)

    assert plan(live, PARK, settings(), AROUND) == Patch(
        "ui",
        {
            "metadata": {
                **READ,
                "annotations": {
                    "spark-ui-agent/state": "parked",
                    "spark-ui-agent/port": None,
                    "spark-ui-agent/scheme": None,
                },
            },
            "spec": {"selector": together(dict.fromkeys(OWN), PARKED)},
        },
    )


def test_a_missing_service_is_created_parked_owned_by_our_pod() -> None:
    given = settings(
        CREATE_LABELS="team=a",
        CREATE_ANNOTATIONS="lb/internal=true",
        SERVICE_TYPE="LoadBalancer",
        EXPOSE="8080",
        PORT_NAME="http",
    )

    assert plan(None, SERVE, given, AROUND) == Create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "ui",
                "namespace": "t",
                "labels": {"team": "a"},
                "annotations": together(WITHDRAWN, {"lb/internal": "true", CREATED_BY: HOLDER}),
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": POD, "uid": POD_UID}],
            },
            "spec": {
                "type": "LoadBalancer",
                "selector": PARKED,
                "ports": [{"name": "http", "port": 8080, "protocol": "TCP", "targetPort": 45123}],
            },
        }
    )


def test_an_epoch_is_written_even_if_nothing_else_differs() -> None:
    published = service(selector=OWN, ports=[port(45123)], annotations=PUBLISHED)
    parked = service(selector=PARKED, annotations=WITHDRAWN)
    around = replace(AROUND, epoch="0a1b2c3d")
    fence: Object = {**READ, "annotations": {"spark-ui-agent/epoch": "0a1b2c3d"}}

    assert plan(published, SERVE, settings(), around) == Patch(
        "ui", {"metadata": fence, "spec": {"selector": OWN, "ports": [port(45123)]}}
    )
    assert plan(parked, PARK, settings(), around) == Patch(
        "ui", {"metadata": fence, "spec": {"selector": PARKED}}
    )


@pytest.mark.parametrize(
    "live",
    [
        pytest.param(service(selector=OWN, ports=[port(45123)], annotations=PUBLISHED), id="ours alone"),
        pytest.param(
            service(
                selector=OWN,
                ports=[port(45123)],
                annotations={**PUBLISHED, "team": "x", "spark-ui-agent/epoch": "0a1b2c3d"},
            ),
            id="beside a user's annotations and an old epoch",
        ),
    ],
)
def test_what_is_as_wanted_is_left_alone(live: dict[str, object]) -> None:
    assert plan(live, SERVE, settings(), AROUND) == Nothing(exposed=True)


@pytest.mark.parametrize(
    ("drifted", "body"),
    [
        pytest.param(
            service(selector=OWN, ports=[port(4040)], annotations=PUBLISHED),
            {"metadata": READ, "spec": {"selector": OWN, "ports": [port(45123)]}},
            id="another target port",
        ),
        pytest.param(
            service(selector=OWN, ports=[port("ui")], annotations=PUBLISHED),
            {"metadata": READ, "spec": {"selector": OWN, "ports": [port(45123)]}},
            id="a named target port, which the Pod need not declare",
        ),
        pytest.param(
            service(selector={**OWN, "more": "1"}, ports=[port(45123)], annotations=PUBLISHED),
            {"metadata": READ, "spec": {"selector": together(OWN, {"more": None}), "ports": [port(45123)]}},
            id="a key too many",
        ),
        pytest.param(
            service(selector=OWN, ports=[port(45123)], annotations={**PUBLISHED, "spark-ui-agent/port": "1"}),
            {
                "metadata": {**READ, "annotations": {"spark-ui-agent/port": "45123"}},
                "spec": {"selector": OWN, "ports": [port(45123)]},
            },
            id="a mark of ours changed",
        ),
        pytest.param(
            service(selector=PARKED, ports=[port(45123)], annotations=PUBLISHED),
            {
                "metadata": READ,
                "spec": {
                    "selector": together(OWN, {"spark-ui-agent/parked": None}),
                    "ports": [port(45123)],
                },
            },
            id="parked by a write that came late",
        ),
    ],
)
def test_drift_is_corrected(drifted: dict[str, object], body: dict[str, object]) -> None:
    step = plan(drifted, SERVE, settings(), AROUND)

    assert isinstance(step, Patch)
    assert (step.name, step.body) == ("ui", body)


@pytest.mark.parametrize(
    ("live", "stale", "moves"),
    [
        pytest.param(service(selector=PARKED), False, False, id="from nowhere"),
        pytest.param(service(selector=OWN, ports=[port(4040)]), False, True, id="from another port"),
        pytest.param(service(selector=OWN, ports=[port("ui")]), False, True, id="from a port by name"),
        pytest.param(service(selector=OWN, ports=[port(45123)]), False, False, id="from that very port"),
        pytest.param(
            service(selector={}, annotations=PUBLISHED), True, True, id="from no selector, but stale"
        ),
        pytest.param(
            service(selector=OWN, ports=[port(45123, name="spark-ui"), port(4040, name="more", number=81)]),
            False,
            False,
            id="beside another entry, which stays",
        ),
    ],
)
def test_whether_publishing_moves_the_service_from_another_port(
    live: dict[str, object], stale: bool, moves: bool
) -> None:
    step = plan(live, SERVE, settings(), replace(AROUND, exposed=stale))

    assert isinstance(step, Patch)
    assert step.moves is moves


# --- which of the ports -----------------------------------------------------------------------------------

DNS = port(53, name="dns", number=53, protocol="UDP")
ADMIN = port(9999, name="admin", number=9999)


@pytest.mark.parametrize(
    ("ports", "given", "written"),
    [
        pytest.param(
            [port(4040, appProtocol="http", nodePort=30080)],
            {},
            [port(45123, appProtocol="http", nodePort=30080)],
            id="name, appProtocol and nodePort survive",
        ),
        pytest.param(
            [port(4040, name="", number=4045)], {}, [port(45123, name="", number=4045)], id="unnamed"
        ),
        pytest.param(
            [port(4040, name="tcp", number=80), port(81, name="udp", number=80, protocol="UDP")],
            {},
            [port(45123, name="tcp", number=80), port(81, name="udp", number=80, protocol="UDP")],
            id="one number for TCP and UDP: both stay",
        ),
        pytest.param(
            [ADMIN, port(1, name="spark-ui")], {}, [ADMIN, port(45123, name="spark-ui")], id="by name"
        ),
        pytest.param(
            [ADMIN, port(1, name="web")],
            {"PORT_NAME": "web"},
            [ADMIN, port(45123, name="web")],
            id="by a given name",
        ),
        pytest.param(
            [ADMIN, port(1, name="x", number=4040)],
            {},
            [ADMIN, port(45123, name="x", number=4040)],
            id="by number, when no name fits",
        ),
        pytest.param(
            [port(1, name="x", number=4040), port(2, name="spark-ui", number=81)],
            {},
            [port(1, name="x", number=4040), port(45123, name="spark-ui", number=81)],
            id="the name beats the number",
        ),
        pytest.param([DNS, port(1, name="x")], {}, [DNS, port(45123, name="x")], id="the only TCP one"),
    ],
)
def test_one_target_port_changes(
    ports: list[dict[str, object]], given: dict[str, str], written: list[dict[str, object]]
) -> None:
    step = plan(service(selector=OWN, ports=ports), SERVE, settings(given), AROUND)

    assert isinstance(step, Patch)
    spec = step.body["spec"]
    assert isinstance(spec, dict)
    assert spec["ports"] == written


# --- what is refused --------------------------------------------------------------------------------------


def refused(step: Step) -> str:
    assert isinstance(step, Refuse), step
    assert step.why.found
    assert step.why.remedy
    return step.why.code


@pytest.mark.parametrize(
    ("live", "code", "word"),
    [
        pytest.param(service(selector=OWN, clusterIP="None"), "service", "headless", id="headless"),
        pytest.param(
            service(selector=OWN, type="ExternalName", externalName="x"),
            "service",
            "ExternalName",
            id="ExternalName",
        ),
        pytest.param(service(selector=OWN, ports=[DNS]), "port", "dns/UDP", id="no TCP port"),
        pytest.param(
            service(selector=OWN, ports=[ADMIN, port(1, name="x")]),
            "port",
            "admin/TCP, x/TCP",
            id="none is the UI's",
        ),
        pytest.param(service(), "adopt", "ui-none=none", id="selects something else and has no mark"),
        pytest.param(service(selector={}), "adopt", "selects nothing", id="selects nothing and has no mark"),
        pytest.param(
            service(selector={"spark-app-selector": OTHER_APP}),
            "foreign",
            OTHER_APP,
            id="another application's",
        ),
        pytest.param(
            service(selector=OWN, annotations={"spark-ui-agent/holder": "drv-2/u2"}),
            "holder",
            "drv-2",
            id="held",
        ),
        pytest.param(
            service(
                selector={"spark-ui-agent/parked": "u2"},
                annotations={"spark-ui-agent/holder": "drv-2/u2", "spark-ui-agent/application": APP},
            ),
            "holder",
            "drv-2",
            id="held and parked, with an id like ours",
        ),
        pytest.param(
            service(selector={}, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            "service",
            "is being deleted",
            id="being deleted",
        ),
    ],
)
def test_a_service_that_is_not_for_us_is_refused_and_left_alone(
    live: dict[str, object], code: str, word: str
) -> None:
    step = plan(live, SERVE, settings(), AROUND)

    assert refused(step) == code
    assert isinstance(step, Refuse)
    assert word in step.why.found


MARKED = {"spark-ui-agent/holder": HOLDER}


@pytest.mark.parametrize(
    "live",
    [
        service(selector=OWN, annotations=MARKED, ports=[ADMIN, port(45123, name="x")]),
        service(selector=OWN, annotations=MARKED, clusterIP="None"),
    ],
)
def test_a_service_of_ours_that_was_made_useless_is_parked_then_refused(live: dict[str, object]) -> None:
    step = plan(live, SERVE, settings(), AROUND)

    assert isinstance(step, Patch)
    assert step.body["spec"] == {"selector": together(dict.fromkeys(OWN), PARKED)}
    live = together(live, {"spec": together(as_object(live["spec"]), {"selector": PARKED})})
    assert isinstance(plan(live, SERVE, settings(), AROUND), Refuse)


def as_object(value: object) -> Object:
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize(
    "live",
    [
        pytest.param(
            service(selector=OWN, clusterIP="None", ports=[port(7078, name="rpc"), port(7079, name="bm")]),
            id="the driver's own headless Service, named by mistake: executors need it",
        ),
        pytest.param(
            service(selector=OWN, ports=[ADMIN, port(1, name="x")]), id="none of its ports is the UI's"
        ),
    ],
)
@pytest.mark.parametrize("wanted", [PARK, RELEASE])
def test_a_service_for_something_else_is_not_parked(live: dict[str, object], wanted: Park | Release) -> None:
    assert plan(live, wanted, settings(), EMPTY) == Nothing(exposed=False)


@pytest.mark.parametrize("wanted", [PARK, RELEASE])
@pytest.mark.parametrize(
    "live",
    [
        pytest.param(None, id="missing"),
        pytest.param(service(), id="selects something else"),
        pytest.param(service(selector={}), id="selects nothing, its slices without us"),
        pytest.param(service(selector={"spark-app-selector": OTHER_APP}), id="another application's"),
        pytest.param(
            service(selector={"a": "b"}, annotations={"spark-ui-agent/holder": "drv-2/u2"}),
            id="held by another",
        ),
    ],
)
def test_what_never_led_here_is_not_touched_when_parking(
    live: dict[str, object] | None, wanted: Park | Release
) -> None:
    assert plan(live, wanted, settings(), AROUND) == Nothing(exposed=False)


def test_a_service_that_leads_here_but_is_held_by_another_is_not_waited_for() -> None:
    live = service(selector={"uid-tag": "drv-1"}, annotations={"spark-ui-agent/holder": "drv-2/u2"})

    assert plan(live, PARK, settings(), AROUND) == Nothing(exposed=False)


@pytest.mark.parametrize(
    ("given", "around", "code"),
    [
        pytest.param({"CREATE": "false"}, AROUND, "service", id="creating is off"),
        pytest.param({"SERVICE_LABELS": "a=b"}, AROUND, "service", id="looked for by labels"),
        pytest.param({}, Around(pod=None), "rbac", id="our Pod can't be read, so it can't be the owner"),
        pytest.param({}, Around(pod=pod(uid="another")), "rbac", id="the Pod of our name is another one"),
        pytest.param({"SELECTOR": "a=b"}, AROUND, "selector", id="labels that our Pod does not have"),
    ],
)
def test_a_missing_service_is_not_always_created(given: dict[str, str], around: Around, code: str) -> None:
    chosen = settings(given)

    assert refused(plan(None, SERVE, chosen, around)) == code
    assert plan(None, PARK, chosen, around) == Nothing(exposed=False)


# --- withdrawing ------------------------------------------------------------------------------------------


def test_a_service_without_a_selector_whose_slices_still_hold_us_is_parked() -> None:
    live = service(selector={}, annotations=PUBLISHED)

    step = plan(live, PARK, settings(), replace(AROUND, exposed=True))

    assert isinstance(step, Patch)
    assert step.body["spec"] == {"selector": PARKED}
    assert plan(live, PARK, settings(), replace(AROUND, empty=True)) == Nothing(exposed=False)


def test_a_users_selector_that_matches_our_pod_is_parked_before_any_proof() -> None:
    step = plan(service(selector={"uid-tag": "drv-1"}), PARK, settings(), AROUND)

    assert isinstance(step, Patch)
    assert step.body["spec"] == {"selector": together(PARKED, {"uid-tag": None})}


def test_parked_is_not_gone_before_the_slices_are_empty() -> None:
    live = service(selector=PARKED, annotations=WITHDRAWN)

    assert plan(live, PARK, settings(), AROUND) == Nothing(exposed=True)
    assert plan(live, PARK, settings(), replace(AROUND, empty=True)) == Nothing(exposed=False)


@pytest.mark.parametrize("labels_known", [True, False])
def test_a_users_own_selector_on_a_parked_service_stays_where_it_surely_does_not_match_us(
    labels_known: bool,
) -> None:
    live = service(selector={"app": "another-server"}, annotations=WITHDRAWN)
    around = AROUND if labels_known else Around(pod=None)

    step = plan(live, PARK, settings(), around)

    assert isinstance(step, Nothing if labels_known else Patch)


def test_release_deletes_what_we_created_once_nothing_leads_here() -> None:
    live = service(selector=PARKED, annotations={**WITHDRAWN, CREATED_BY: HOLDER})

    assert plan(live, RELEASE, settings(), AROUND) == Nothing(exposed=True)
    assert plan(live, RELEASE, settings(), EMPTY) == Delete("ui", "uid-of-ui")
    assert plan(live, PARK, settings(), EMPTY) == Nothing(exposed=False)


def test_release_takes_our_marks_off_what_we_adopted_and_deletes_nothing() -> None:
    marks = {**WITHDRAWN, "spark-ui-agent/epoch": "0a1b2c3d", "team": "x"}
    live = service(selector=PARKED, annotations=marks)

    assert plan(live, RELEASE, settings(), EMPTY) == Patch(
        "ui",
        {
            "metadata": {
                **READ,
                "annotations": {
                    "spark-ui-agent/application": None,
                    "spark-ui-agent/holder": None,
                    "spark-ui-agent/state": None,
                    "spark-ui-agent/epoch": None,
                },
            }
        },
    )
    assert plan(service(selector=PARKED), RELEASE, settings(), EMPTY) == Nothing(exposed=False)


def test_what_another_pod_created_is_not_deleted() -> None:
    live = service(selector=PARKED, annotations={**WITHDRAWN, CREATED_BY: "drv-0/u0"})

    assert isinstance(plan(live, RELEASE, settings(), EMPTY), Patch)


def test_release_parks_first() -> None:
    live = service(selector=OWN, ports=[port(45123)], annotations={**PUBLISHED, CREATED_BY: HOLDER})

    step = plan(live, RELEASE, settings(), AROUND)

    assert isinstance(step, Patch)
    assert step.body["spec"] == {"selector": together(dict.fromkeys(OWN), PARKED)}


# --- who owns it ------------------------------------------------------------------------------------------

DEAD_OWNER = {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "drv-0", "uid": "u0"}]}


def test_a_service_owned_by_a_dead_pod_is_deleted_to_be_made_anew() -> None:
    live = service(selector=OWN, metadata=DEAD_OWNER)

    assert plan(live, SERVE, settings(), replace(AROUND, owner_gone=True)) == Delete("ui", "uid-of-ui")
    assert isinstance(plan(live, SERVE, settings(), AROUND), Patch)


@pytest.mark.parametrize("given", [{"CREATE": "false"}, {"SERVICE_LABELS": "k=v"}])
def test_it_is_not_deleted_where_it_could_not_be_made_anew(given: dict[str, str]) -> None:
    live = service(selector=OWN, metadata=DEAD_OWNER)

    assert isinstance(plan(live, SERVE, settings(given), replace(AROUND, owner_gone=True)), Patch)


def test_an_unknown_application_leaves_no_mark_of_a_former_one() -> None:
    live = service(selector={"uid-tag": "drv-1"}, annotations={"spark-ui-agent/application": "spark-old"})
    chosen = settings(app="", SELECTOR="uid-tag=drv-1", HOOK="on")

    step = plan(live, Serve(4040, Scheme.HTTP, "", Proof.HOOK), chosen, AROUND)

    assert isinstance(step, Patch)
    metadata = step.body["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["annotations"]["spark-ui-agent/application"] is None
