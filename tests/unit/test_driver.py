"""The end of the driver, read from the Pod: which Pods say so, and when the Pod is read at all."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping

import pytest

from agent import times
from agent.decide.lifecycle import ended, finished, patience, shows_driver
from agent.model import (
    ApiError,
    Draining,
    DriverEnded,
    Fact,
    ForbiddenError,
    Listener,
    NotFoundError,
    Observed,
    Scanned,
    Trouble,
    UnreachableError,
)
from agent.sense.driver import DriverWatch

from .senses import Told, settings
from .virtualtime import run_virtually

DRIVER = "spark-kubernetes-driver"
UID = 185
Pod = dict[str, object]


def pod(
    state: Mapping[str, object] | None = None,
    *,
    policy: str = "Never",
    phase: str = "Running",
    uid: str = "0a1b",
    deleted: str | None = None,
    name: str = DRIVER,
) -> Pod:
    other = {"name": "agent", "state": {"terminated": {"exitCode": 0}}}
    statuses = [other] + ([{"name": name, "state": state}] if state is not None else [])
    metadata: Pod = {"name": "drv-1", "uid": uid}
    if deleted:
        metadata["deletionTimestamp"] = deleted
    return {
        "metadata": metadata,
        "spec": {"restartPolicy": policy, "containers": [{"name": "agent"}, {"name": name}]},
        "status": {"phase": phase, "containerStatuses": statuses},
    }


RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
DONE = {"terminated": {"exitCode": 0}}
CRASHED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (pod(RUNNING), None),
        (pod({"waiting": {"reason": "ContainerCreating"}}), None),
        (pod(None), None),
        (pod(DONE), "container spark-kubernetes-driver has ended with exit code 0"),
        (pod(CRASHED), "container spark-kubernetes-driver has ended with exit code 137"),
        (pod(DONE, policy="Always"), None),
        (pod(DONE, policy=""), None),
        (pod(CRASHED, policy="OnFailure"), None),
        (pod(DONE, policy="OnFailure"), "container spark-kubernetes-driver has ended with exit code 0"),
        (pod(RUNNING, deleted="2026-01-01T00:00:00Z"), "the Pod is being deleted"),
        (pod(None, phase="Failed"), "the Pod has failed"),
        (pod(None, phase="Succeeded"), "the Pod has succeeded"),
        (pod(RUNNING, uid="other"), "another Pod has our name"),
        ({}, None),
        ({"status": {"containerStatuses": [{"name": DRIVER, "state": "odd"}, 7]}}, None),
    ],
)
def test_ended(shown: Pod, why: str | None) -> None:
    assert ended(shown, settings()) == why


def test_another_containers_end_is_not_the_drivers() -> None:
    assert ended(pod(DONE, name="other"), settings()) is None
    assert not shows_driver(pod(DONE, name="other"), settings())
    assert shows_driver(pod(DONE), settings())
    assert ended(pod(DONE, name="other"), settings(driver_container="other")) is not None


class Api:
    """Answers of the API server in order, the last one for ever, with the loop times of the questions."""

    def __init__(self, *answers: Pod | ApiError) -> None:
        self.answers = list(answers)
        self.asked: list[float] = []

    async def get_pod(self) -> Pod:
        self.asked.append(asyncio.get_running_loop().time())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, ApiError):
            raise answer
        return answer


NOW, LAST_CHANCE = 1000.0, 1000.0 + times.FAREWELL


@pytest.mark.parametrize(
    ("begun", "published", "until"),
    [
        (NOW, True, NOW + times.DRAIN_DEFAULT),
        (NOW - 4, True, NOW - 4 + times.DRAIN_DEFAULT),
        # `drain` has had it all, moments ago or by hand long before: one more try
        (NOW - times.DRAIN_DEFAULT, True, LAST_CHANCE),
        (NOW - 3600, True, LAST_CHANCE),
        (NOW, False, NOW + times.END_LOOK),
        (NOW - times.END_LOOK, False, LAST_CHANCE),
    ],
)
def test_prestop_and_sigterm_share_the_time_of_one_end(begun: float, published: bool, until: float) -> None:
    assert patience(NOW, begun, published=published) == until


def listener(inode: int = 7, uid: int = UID) -> Scanned:
    return Scanned(frozenset({Listener(7078, "10.0.0.9", uid, inode, 4096)}))


REFUSED = Trouble("rbac", "403", "give it the verbs")


@pytest.mark.parametrize(
    ("facts", "observed", "done"),
    [
        ([Draining("SIGTERM", leave=True), listener()], Observed(9, routed=False), True),
        # the driver's end is not known yet: the Service may still be ours to delete
        ([Draining("SIGTERM", leave=True)], Observed(9, routed=False), False),
        ([Draining("SIGTERM", leave=True), DriverEnded("exit")], Observed(9, routed=False), False),
        ([Draining("SIGTERM", leave=True), DriverEnded("exit")], Observed(9, False, released=True), True),
        # whoever may not write has nothing to delete
        ([Draining("SIGTERM", leave=True)], Observed(9, routed=False, blocked=REFUSED), True),
        ([Draining("SIGTERM", leave=True)], Observed(9, routed=True, blocked=REFUSED), False),
        ([Draining("drain")], Observed(9, routed=False, blocked=REFUSED), False),
    ],
)
def test_when_nothing_is_left_to_do(facts: list[Fact], observed: Observed, done: bool) -> None:
    told = Told(settings(driver_uid=str(UID)))
    for fact in [Scanned(frozenset()), *facts, observed]:
        told.tell(fact)
    assert finished(told.world, told.settings, frozenset()) is done


QUIET = Scanned(frozenset())
FORBIDDEN = ForbiddenError(403, "Forbidden", "pods get")
AWAY = UnreachableError(0, "Unreachable", "timed out")


class Scene:
    """A watch at work on a virtual clock; facts are told at their times, in seconds from the beginning."""

    def __init__(self, api: Api, *, ours: frozenset[int] = frozenset(), **more: str) -> None:
        self.api = api
        self.told = Told(settings(driver_uid=str(UID), **more))
        self.ours = ours

    async def play(self, script: Mapping[float, Scanned | Draining], until: float) -> list[float]:
        """The times of the questions to the API, in seconds from the beginning; ends with the watch or at `until`."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        watch = DriverWatch(
            self.api.get_pod, self.told.tell, self.told.view, self.told.settings, lambda: self.ours
        )
        self.told.listen = watch.wake
        for at, fact in script.items():
            loop.call_later(at, self.told.tell, fact)
        task = asyncio.create_task(watch.run())
        await asyncio.wait({task}, timeout=until)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return [at - began for at in self.api.asked]

    def ends(self) -> list[str]:
        return [fact.why for fact in self.told.facts if isinstance(fact, DriverEnded)]


def test_a_living_driver_costs_no_call() -> None:
    scene = Scene(Api(pod(RUNNING)), mode="plain")
    assert run_virtually(scene.play({0: listener(), 5: listener(8)}, 5000)) == []
    assert scene.ends() == []


def test_nothing_is_asked_before_the_first_scan() -> None:
    scene = Scene(Api(pod(DONE)), mode="plain")
    assert run_virtually(scene.play({}, 5000)) == []


def test_the_driver_ends_and_is_told_once() -> None:
    scene = Scene(Api(pod(RUNNING), pod(RUNNING), pod(DONE)), mode="plain")
    asked = run_virtually(scene.play({0: listener(), 100: QUIET}, 5000))
    assert asked == pytest.approx([101, 102, 104])
    assert scene.ends() == ["container spark-kubernetes-driver has ended with exit code 0"]


def test_a_quiet_driver_is_asked_after_ever_more_seldom() -> None:
    scene = Scene(Api(pod(RUNNING)), mode="plain")
    asked = run_virtually(scene.play({0: listener(), 100: QUIET}, 200))
    gaps = [after - before for before, after in itertools.pairwise(asked)]
    assert gaps == sorted(gaps)
    assert gaps[-1] == pytest.approx(times.END_POLL_MAX)
    assert scene.ends() == []


def test_a_new_context_stops_the_questions() -> None:
    scene = Scene(Api(pod(RUNNING)), mode="plain")
    asked = run_virtually(scene.play({0: listener(), 100: QUIET, 103.5: listener(8)}, 5000))
    assert asked == pytest.approx([101, 102])


def test_other_uids_and_our_own_sockets_are_no_sign_of_life() -> None:
    scene = Scene(Api(pod(DONE)), ours=frozenset({5}), mode="plain")
    both = Scanned(frozenset({Listener(4900, "0.0.0.0", UID, 5, 100), Listener(22, "0.0.0.0", 0, 6, 128)}))
    assert run_virtually(scene.play({0: both}, 5000)) == pytest.approx([1])
    assert len(scene.ends()) == 1


def test_a_pod_that_is_gone_has_ended() -> None:
    scene = Scene(Api(NotFoundError(404, "NotFound", "pods drv-1")))
    run_virtually(scene.play({0: QUIET}, 5000))
    assert scene.ends() == ["the Pod is gone"]


@pytest.mark.parametrize("answer", [FORBIDDEN, AWAY, pod(RUNNING, name="other")])
def test_a_plain_sidecar_that_sees_no_driver_ends_after_its_silence(answer: Pod | ApiError) -> None:
    scene = Scene(Api(answer), mode="plain")
    asked = run_virtually(scene.play({0: listener(), 100: QUIET}, 5000))
    assert scene.ends() == ["no socket of the driver's has listened for 60 s"]
    assert 160 <= asked[-1] <= 160 + 2 * times.END_POLL_MAX


def test_a_short_outage_is_not_the_end() -> None:
    # Silent and readable for longer than BLIND_END, then unreadable for less.
    scene = Scene(Api(*[pod(RUNNING)] * 12, AWAY, AWAY, AWAY, pod(RUNNING)), mode="plain")
    asked = run_virtually(scene.play({0: listener(), 100: QUIET}, 400))
    assert asked[11] > 100 + times.BLIND_END
    assert scene.ends() == []


def test_a_driver_never_seen_has_long_to_start() -> None:
    scene = Scene(Api(FORBIDDEN), mode="plain")
    asked = run_virtually(scene.play({0: QUIET}, 5000))
    assert scene.ends() == ["no socket of the driver's has listened for 900 s"]
    assert asked[-1] >= times.BLIND_START


def test_a_native_sidecar_waits_for_its_signal_instead() -> None:
    scene = Scene(Api(FORBIDDEN))
    asked = run_virtually(scene.play({0: listener(), 100: QUIET}, 5000))
    assert scene.ends() == []
    assert len(asked) < 25


def test_after_sigterm_the_pod_is_read_at_once_and_often() -> None:
    scene = Scene(Api(pod(RUNNING), pod(RUNNING), pod(DONE)))
    asked = run_virtually(scene.play({0: listener(), 100: Draining("SIGTERM", leave=True)}, 5000))
    assert asked == pytest.approx([100, 100 + times.END_POLL_ENDING, 100 + 2 * times.END_POLL_ENDING])
    assert len(scene.ends()) == 1


def test_a_drain_by_hand_asks_nothing_while_the_driver_lives() -> None:
    scene = Scene(Api(pod(RUNNING)))
    assert run_virtually(scene.play({0: listener(), 100: Draining("drain")}, 5000)) == []


def test_on_a_shared_network_other_drivers_are_no_sign_of_life() -> None:
    scene = Scene(Api(pod(DONE)), mode="plain", POD_IP="10.0.0.1", HOST_IP="10.0.0.1")
    asked = run_virtually(scene.play({0: listener()}, 5000))
    assert asked == pytest.approx([1])
    assert len(scene.ends()) == 1
