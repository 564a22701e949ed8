"""Promises that hold for any order of facts, held against a small reckoning of their own."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import example, given
from hypothesis import strategies as st

from agent.decide.desired import fold, guarded, initial
from agent.model import (
    Answered,
    Closed,
    Draining,
    DriverEnded,
    Fact,
    HookBound,
    HookReady,
    HookStopping,
    Observed,
    Park,
    Proof,
    Release,
    Scanned,
    Scheme,
    Serve,
    Taken,
    Verdict,
)
from agent.settings import Settings
from tests.support.make import APP, bound, listener, settings

PORTS = (4040, 4041)
# An inode is one socket and keeps its port.
LISTENERS = [listener(port, port * 10 + number) for port in PORTS for number in range(3)]

listeners = st.sampled_from(LISTENERS)
schemes = st.sampled_from(Scheme)
pids = st.sampled_from([7, 8])
facts: st.SearchStrategy[Fact] = st.one_of(
    st.builds(Scanned, st.frozensets(listeners, max_size=3)),
    st.builds(Closed, st.sampled_from(PORTS), st.sampled_from([0, *(item.inode for item in LISTENERS)])),
    st.builds(
        Answered, listeners, schemes, st.builds(Verdict, st.sampled_from(Taken), st.just(""), st.just(APP))
    ),
    listeners.flatmap(
        lambda item: st.builds(HookBound, pids, st.just(item.port), schemes, st.sampled_from([item, None]))
    ),
    st.builds(HookStopping, pids),
    st.just(HookReady()),
    st.builds(Observed, st.integers(0, 6), st.booleans(), elsewhere=st.booleans()),
)
ends = st.sampled_from([Draining("SIGTERM"), DriverEnded("Completed")])
chosen = st.builds(
    settings,
    host_network=st.booleans(),
    SCHEME=st.sampled_from(["auto", "http", "https"]),
    FILTERED_UI=st.sampled_from(["refuse", "socket"]),
    CONTEXTS=st.sampled_from(["newest", "first", "only"]),
)


@dataclass
class Reckoning:
    """What a careful reader of the facts would hold: which sockets are there, and which of them are proven."""

    live: dict[int, int] = field(default_factory=dict)
    rest: set[int] = field(default_factory=set)
    hook: dict[int, int] = field(default_factory=dict)  # inode -> pid
    filtered: set[int] = field(default_factory=set)

    def read(self, fact: Fact) -> None:
        match fact:
            case Scanned():
                self.live = {item.inode: item.port for item in fact.listeners}
            case Closed():
                for inode, port in list(self.live.items()):
                    if port == fact.port and fact.inode in (0, inode):
                        del self.live[inode]
            case Answered() if fact.listener.inode in self.live:
                self.filtered.discard(fact.listener.inode)
                if fact.verdict.taken is Taken.OURS:
                    self.rest.add(fact.listener.inode)
                if fact.verdict.taken is Taken.FILTERED:
                    self.filtered.add(fact.listener.inode)
            case HookBound() if fact.listener is not None:
                self.live[fact.listener.inode] = fact.listener.port
                self.hook[fact.listener.inode] = fact.pid
            case HookStopping():
                stopped = {inode for inode, pid in self.hook.items() if pid == fact.pid}
                self.hook = {inode: pid for inode, pid in self.hook.items() if inode not in stopped}
                self.rest -= stopped
        self.rest &= self.live.keys()
        self.filtered &= self.live.keys()
        self.hook = {inode: pid for inode, pid in self.hook.items() if inode in self.live}

    def proven(self, given: Settings) -> set[int]:
        """Ports that may be served at all."""
        by_socket = given.filtered_ui == "socket" and not given.identity.host_network
        inodes = self.rest | self.hook.keys() | (self.filtered if by_socket else set())
        return {self.live[inode] for inode in inodes}


@given(history=st.lists(facts, max_size=14), given=chosen)
def test_only_a_port_that_is_proven_and_listening_is_ever_served(
    history: list[Fact], given: Settings
) -> None:
    world, reckoning = initial(), Reckoning()
    for fact in history:
        world = fold(world, fact, given)
        reckoning.read(fact)
        if isinstance(world.intent.desired, Serve):
            assert world.intent.desired.port in reckoning.proven(given)
            assert given.scheme in ("auto", world.intent.desired.scheme)


@given(history=st.lists(facts, max_size=12), given=chosen)
@example(
    history=[bound(4040, inode=40401), Answered(LISTENERS[3], Scheme.HTTP, Verdict(Taken.OURS, "", APP))],
    given=settings(host_network=True),
)
def test_on_a_shared_network_the_hooks_word_beats_an_id(history: list[Fact], given: Settings) -> None:
    world = initial()
    for fact in history:
        world = fold(world, fact, given)
        hooked = {ui.listener.port for ui in world.proven if ui.proof is Proof.HOOK}
        shared = given.identity.host_network and given.scheme == "auto"
        if isinstance(world.intent.desired, Serve) and shared and hooked:
            assert world.intent.desired.port in hooked
            assert world.intent.desired.proof is Proof.HOOK


@given(
    before=st.lists(facts, max_size=8),
    end=ends,
    after=st.lists(st.one_of(facts, ends), max_size=10),
    given=chosen,
)
def test_after_an_end_nothing_is_served_again(
    before: list[Fact], end: Fact, after: list[Fact], given: Settings
) -> None:
    world, ended = initial(), False
    for fact in before:
        world = fold(world, fact, given)
    for fact in [end, *after]:
        world = fold(world, fact, given)
        ended = ended or isinstance(fact, DriverEnded)
        assert isinstance(world.intent.desired, Release if ended else Park)


@given(history=st.lists(st.one_of(facts, ends), max_size=20), given=chosen)
def test_the_number_rises_by_one_when_what_is_wanted_changes_and_never_else(
    history: list[Fact], given: Settings
) -> None:
    world = initial()
    for fact in history:
        before, world = world.intent, fold(world, fact, given)
        changed = before.desired != world.intent.desired
        assert world.intent.generation == before.generation + changed


@given(history=st.lists(facts, max_size=20))
def test_a_port_that_is_let_go_was_seen_gone_or_replaced_or_is_ours_again(history: list[Fact]) -> None:
    given = settings(host_network=True)
    world = initial()
    for fact in history:
        before, world = guarded(world, given), fold(world, fact, given)
        after = guarded(world, given)
        observed = world.observed
        told = observed is not None and observed.generation >= world.intent.generation
        for freed in before:
            ours_again = any(ui.listener.port == freed.port for ui in world.proven)
            listens = freed.inode in world.listeners
            assert freed in after or listens or ours_again or told
