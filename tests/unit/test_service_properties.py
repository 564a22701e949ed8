"""For any live Service and anything wanted: the steps converge, stay within what is ours, and are then quiet."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agent.act.reconciler import STEPS
from agent.decide.ownership import APPLICATION, CREATED_BY, HOLDER, PREFIX, Around, routes_here
from agent.decide.service import Create, Delete, Nothing, Patch, Refuse, plan
from agent.decide.tree import Json, items, mapping, strings, text
from agent.model import Desired, Park, Proof, Release, Scheme, Serve, Trouble
from agent.settings import Settings
from tests.support.cluster import Cluster
from tests.support.make import APP, LABELS, OTHER_APP, OWN, POD, Object, pod, port, service, settings

WHY = Trouble("stopped", "the UI has closed", "none needed")
UID = Cluster().uid  # a store gives the same uids to the same objects each time
PARKED = {"spark-ui-agent/parked": UID}

desireds: st.SearchStrategy[Desired] = st.one_of(
    st.builds(
        Serve,
        st.integers(1, 65535),
        st.sampled_from(Scheme),
        st.sampled_from([APP, "x"]),
        st.sampled_from(Proof),
    ),
    st.just(Park(WHY)),
    st.just(Release(WHY)),
)
selectors: st.SearchStrategy[dict[str, str]] = st.sampled_from(
    [
        {},
        OWN,
        PARKED,
        {"uid-tag": "drv-1"},
        {"app": "x"},
        {**OWN, "app": "x"},
        {"spark-ui-agent/parked": "u2"},
        {"spark-app-selector": OTHER_APP},
    ]
)
marks: st.SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {},
    optional={
        HOLDER: st.sampled_from([f"{POD}/{UID}", "drv-2/u2", "rubbish"]),
        APPLICATION: st.sampled_from([APP, OTHER_APP, ""]),
        CREATED_BY: st.sampled_from([f"{POD}/{UID}", "drv-2/u2"]),
        "spark-ui-agent/port": st.sampled_from(["4040", "x"]),
        "spark-ui-agent/epoch": st.just("0a1b2c3d"),
        "team": st.just("x"),
    },
)
entries = st.lists(
    st.builds(
        lambda name, number, protocol, target, more: port(
            target, name=name, number=number, protocol=protocol, **more
        ),
        st.sampled_from(["http-ui", "spark-ui", "web", "dns"]),
        st.integers(1, 65535),
        st.sampled_from(["TCP", "UDP"]),
        st.one_of(st.integers(1, 65535), st.just("named")),
        st.sampled_from([{}, {"appProtocol": "http"}]),
    ),
    min_size=1,
    max_size=3,
    unique_by=(lambda entry: entry["name"], lambda entry: (entry["port"], entry["protocol"])),
)
kinds: st.SearchStrategy[dict[str, object]] = st.sampled_from(
    [
        {"type": "ClusterIP"},
        {"type": "NodePort"},
        {"type": "LoadBalancer"},
        {"type": "ExternalName", "externalName": "x.example"},
        {"type": "ClusterIP", "clusterIP": "None", "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]},
    ]
)
owners = st.sampled_from(
    [{}, {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "drv-1", "uid": UID}]}]
)


@st.composite
def lives(draw: st.DrawFn) -> Object | None:
    """A Service as it may stand, or none."""
    if draw(st.integers(0, 9)) == 0:
        return None
    spec = draw(kinds)
    return service(
        selector=draw(selectors),
        ports=draw(entries),
        annotations=draw(marks),
        metadata=draw(owners),
        **spec,
    )


arounds = st.builds(
    Around,
    st.sampled_from([None, pod(uid=UID)]),
    holder_gone=st.booleans(),
    owner_gone=st.booleans(),
    epoch=st.sampled_from(["", "11223344"]),
    exposed=st.booleans(),
)
chosen = st.builds(
    settings,
    uid=st.just(UID),
    ADOPT=st.sampled_from(["own", "any"]),
    CREATE=st.sampled_from(["true", "false"]),
    PORT_NAME=st.sampled_from(["spark-ui", "web"]),
)


class Applied:
    """The API server, and the endpoint controller at its best: slices are empty as soon as nothing selects us."""

    def __init__(self, live: Object | None) -> None:
        self.cluster = Cluster()
        if live is not None:
            self.cluster.add_service(live)

    def carry_out(self, step: Create | Patch | Delete) -> None:
        match step:
            case Create():
                self.cluster.add_service(step.body)
            case Patch():
                self.cluster.patch(dict(step.body), step.name)
            case Delete():
                self.cluster.delete(step.name)


def run(applied: Applied, wanted: Desired, given: Settings, around: Around) -> tuple[int, Nothing | Refuse]:
    """As a pass of the reconciler: the number of writes, and how it ended."""
    for count in range(STEPS):
        step = plan(applied.cluster.service(), wanted, given, around)
        match step:
            case Nothing(exposed=True) if not isinstance(wanted, Serve):
                around = replace(around, empty=True)
            case Nothing() | Refuse():
                return count, step
            case _:
                applied.carry_out(step)
                around = replace(around, epoch="", exposed=False, empty=False)
    raise AssertionError(f"still {step} after {STEPS} steps")


@given(live=lives(), wanted=desireds, given=chosen, around=arounds)
def test_it_converges_and_a_second_pass_writes_nothing(
    live: Object | None, wanted: Desired, given: Settings, around: Around
) -> None:
    applied = Applied(live)

    _, end = run(applied, wanted, given, around)
    revision = applied.cluster.store.ledger.revision
    again = run(applied, wanted, given, replace(around, epoch="", exposed=False))

    assert applied.cluster.store.ledger.revision == revision
    assert type(again[1]) is type(end)


@given(live=lives(), wanted=desireds, given=chosen, around=arounds)
def test_it_ends_as_wanted_or_is_refused_or_was_never_ours(
    live: Object | None, wanted: Desired, given: Settings, around: Around
) -> None:
    applied = Applied(live)

    _, end = run(applied, wanted, given, around)

    after = applied.cluster.service()
    if isinstance(wanted, Serve) and isinstance(end, Nothing):
        assert after is not None
        assert after["spec"]["selector"] == OWN
        assert wanted.port in [entry["targetPort"] for entry in after["spec"]["ports"]]
    if not isinstance(wanted, Serve) and after is not None and not end_refused(end):
        led = routes_here(after, pod(uid=UID), OWN)
        assert not led or not_for_us(after, given, around)


def end_refused(end: Nothing | Refuse) -> bool:
    return isinstance(end, Refuse)


def not_for_us(after: Json, given: Settings, around: Around) -> bool:
    """A living neighbour holds it, or it is no Service that a UI could have, or its labels are not known to match."""
    held = strings(after, "metadata", "annotations").get(HOLDER, "")
    stranger = "/" in held and held != given.identity.holder and not around.holder_gone
    useless = isinstance(
        plan({**after, "metadata": {"name": "ui"}}, SERVE_ANY, replace(given, adopt="any"), around), Refuse
    )
    unseen = around.pod is None and strings(after, "spec", "selector") == {"uid-tag": LABELS["uid-tag"]}
    return stranger or useless or unseen


SERVE_ANY = Serve(1, Scheme.HTTP, APP, Proof.REST)


@given(live=lives(), wanted=desireds, given=chosen, around=arounds)
def test_nothing_changes_but_the_selector_one_target_port_and_our_annotations(
    live: Object | None, wanted: Desired, given: Settings, around: Around
) -> None:
    applied = Applied(live)
    before = applied.cluster.service()

    run(applied, wanted, given, around)

    after = applied.cluster.service()
    if before is None or after is None or after["metadata"]["uid"] != before["metadata"]["uid"]:
        assert before is None or was_ours_to_delete(before, given, around)
        return
    for side in (before, after):
        side["metadata"].pop("resourceVersion")
        side["metadata"]["annotations"] = {
            key: value
            for key, value in mapping(side, "metadata", "annotations").items()
            if not key.startswith(PREFIX)
        }
        side["spec"].pop("selector", None)
    old, new = before["spec"].pop("ports"), after["spec"].pop("ports")
    assert after == before
    changed = [(one, other) for one, other in zip(old, new, strict=True) if one != other]
    assert len(changed) <= 1
    for one, other in changed:
        assert {**one, "targetPort": other["targetPort"]} == other


def was_ours_to_delete(before: Json, given: Settings, around: Around) -> bool:
    created = text(before, "metadata", "annotations", CREATED_BY) == given.identity.holder
    owned = bool(items(before, "metadata", "ownerReferences"))
    return created or (owned and around.owner_gone)


@given(live=lives(), wanted=desireds, given=chosen, around=arounds)
def test_a_service_of_another_live_application_is_never_written(
    live: Object | None, wanted: Desired, given: Settings, around: Around
) -> None:
    applied = Applied(live)
    before = applied.cluster.service()
    if before is None:
        return
    held = text(before, "metadata", "annotations", HOLDER)
    theirs = (held == "drv-2/u2" and not around.holder_gone) or strings(before, "spec", "selector") == {
        "spark-app-selector": OTHER_APP
    }

    run(applied, wanted, given, around)

    if theirs:
        assert applied.cluster.service() == before
