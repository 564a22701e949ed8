"""Makes the Service equal to the Intent and tells what became of it. There is no second path to the API.

One pass: read, plan, write, and after a withdrawal see the endpoints go. A newer Intent abandons the pass wherever
it is; since every write carries the resourceVersion of what was read, a write so abandoned is fenced off by the
next one, which is sent even if nothing differs.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import replace
from random import Random, SystemRandom
from typing import Protocol

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from .. import times
from ..decide.ownership import HOLDER, Around, others
from ..decide.service import Create, Delete, Nothing, Patch, Refuse, Step, plan
from ..decide.tree import Json, at, text
from ..model import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    Fact,
    ForbiddenError,
    Intent,
    NotFoundError,
    Observed,
    Release,
    Serve,
    ServerError,
    ThrottledError,
    UnauthorizedError,
    UnreachableError,
)
from ..settings import Settings
from .errors import OVERRULED, trouble
from .lookup import Reads, read_around, read_pod, read_service
from .slices import Lists, Slices

TELL_AFTER = 3  # failures in a row that may pass by themselves
STEPS = 6  # delete, create, publish; or park, delete: never more, so more is a fight


class Api(Reads, Lists, Protocol):
    """What the reconciler needs of `agent.act.kube.Kube`."""

    async def create_service(self, body: Json) -> Json: ...
    async def patch_service(self, name: str, body: Json) -> Json: ...
    async def delete_service(self, name: str, uid: str) -> None: ...


class Reconciler:
    """Runs passes until cancelled: at each new Intent, after an error with back-off, else at the drift pace."""

    def __init__(
        self,
        api: Api,
        settings: Settings,
        intent: Callable[[], Intent],
        tell: Callable[[Fact], None],
        chance: Random | None = None,
        *,
        former: bool = False,
    ) -> None:
        self._former = former  # an agent of this Pod had a UI before us
        self._api = api
        self._slices = Slices(api, settings)
        self._settings = settings
        self._intent = intent
        self._tell = tell
        self._random = chance or SystemRandom()
        self._news = asyncio.Event()
        self._scope: asyncio.Timeout | None = None
        self._working_on = -1
        self._failures = 0
        self._late = 0  # passes in a row after which endpoints still lead where they should not
        self._fence = False  # a write was abandoned, or may have been by a former life
        self._first = True
        self._pod: Json | None = None
        self._told: Observed | None = None
        self._kept = ""  # the Service that was written to
        self._port = 0  # that the Service was last made to lead to, while it may still do
        self._elsewhere = False  # endpoints may lead here at another port than that

    def wake(self) -> None:
        """A new Intent stands: what is under way for an older one is abandoned."""
        self._news.set()
        if self._scope is not None and self._intent().generation != self._working_on:
            self._scope.reschedule(asyncio.get_running_loop().time())
            self._scope = None  # once is enough, and an expiring time-out can't be changed

    async def run(self) -> None:
        """Never returns; raises only what is a defect."""
        while True:
            self._news.clear()
            delay = await self._pass()
            try:
                async with asyncio.timeout(delay):
                    await self._news.wait()
                self._failures = self._late = 0
            except TimeoutError:
                pass

    async def _pass(self) -> float:
        """One pass; the time until the next, in seconds."""
        self._working_on = self._intent().generation
        scope = asyncio.timeout(None)
        try:
            async with scope:
                self._scope = scope
                observed = await self._settle()
        except TimeoutError:
            if not scope.expired():
                raise
            return 0.0
        except ApiError as error:
            return self._failed(error)
        finally:
            self._scope = None
        self._say(observed)
        if observed.blocked is not None:
            self._failures += 1
            return self._backoff(times.RETRY_REFUSED_MAX)
        self._failures = 0
        if observed.elsewhere or (observed.routed and not isinstance(self._intent().desired, Serve)):
            # They come within milliseconds, or when a controller is back; or never, in a slice that no one keeps.
            self._late += 1
            most = times.RETRY_MAX_PARKING if self._late < times.LATE_LOOKS else times.RETRY_MAX
            return self._backoff(most, self._late)
        self._late = 0
        return times.DRIFT * self._random.uniform(1 - times.DRIFT_JITTER, 1 + times.DRIFT_JITTER)

    def _failed(self, error: ApiError) -> float:
        self._failures += 1
        passing = isinstance(error, UnreachableError | ServerError | ThrottledError | ConflictError)
        told = self._told
        settled = (
            told is not None and told.generation == self._working_on and not (told.blocked or told.elsewhere)
        )
        # What was reached stays reached through an outage; and a single failure is no news.
        if not settled and (self._failures >= TELL_AFTER or not passing):
            # Whoever may not ask has not published, unless a right was taken away since: no stop() waits for it.
            never = isinstance(error, ForbiddenError | UnauthorizedError) and not self.touched()
            self._say(
                Observed(
                    self._working_on,
                    routed=not never,
                    blocked=trouble(error, self._settings),
                    service=self._settings.service,
                )
            )
        if isinstance(error, ForbiddenError | UnauthorizedError):
            stakes = self.touched() and not isinstance(self._intent().desired, Serve)
            return self._backoff(times.RETRY_REFUSED_PARKING if stakes else times.RETRY_REFUSED_MAX)
        wait = self._backoff(times.RETRY_MAX_PARKING if self._leads_astray() else times.RETRY_MAX)
        if isinstance(error, ThrottledError) and error.retry_after is not None:
            return max(wait, min(error.retry_after, times.RETRY_MAX) * self._random.uniform(1.0, 1.2))
        return wait

    def _leads_astray(self) -> bool:
        """True when the Service may lead to another port than the one to serve, or is to lead nowhere."""
        desired = self._intent().desired
        return not isinstance(desired, Serve) or self._elsewhere or self._port not in (0, desired.port)

    def touched(self) -> bool:
        """True when the Service may lead here by this life of the agent or a former one, or was found to."""
        return bool(self._kept) or bool(self._port) or self._former

    def _say(self, observed: Observed) -> None:
        self._told = observed
        self._tell(observed)

    def _backoff(self, most: float, failures: int = 0) -> float:
        grown = times.RETRY_MIN * 2.0 ** min((failures or self._failures) - 1, 16)
        return min(grown, most) * self._random.uniform(0.8, 1.2)

    async def _settle(self) -> Observed:
        """Read, plan and write until nothing is left to do, starting anew at each conflict.

        Raises:
            ApiError: the last one, when it is no conflict or conflicts do not end.
        """
        retrying = AsyncRetrying(
            retry=retry_if_exception_type((ConflictError, AlreadyExistsError)),
            wait=self._pause,
            stop=stop_after_attempt(times.CONFLICT_TRIES),
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                return await self._once()
        raise AssertionError("unreachable: tenacity re-raises")

    def _pause(self, state: RetryCallState) -> float:
        """Anything up to twice as long as the last time: whoever else writes is not met in step."""
        return self._random.uniform(
            0, min(times.CONFLICT_MIN * 2.0**state.attempt_number, times.CONFLICT_MAX)
        )

    async def _once(self) -> Observed:
        intent = self._intent()
        self._working_on = intent.generation
        desired = intent.desired
        if self._pod is None:  # once: its labels and uid do not change
            self._pod = await read_pod(self._api, self._settings)
        service = await read_service(self._api, self._settings, self._pod, self._kept)
        name = text(service, "metadata", "name") or self._settings.service
        around = await self._around(service)
        for _ in range(STEPS):
            step = plan(service, desired, self._settings, around)
            match step:
                case Refuse():
                    if step.why.code == "selector":
                        self._pod = None  # its labels may be mended
                    return Observed(intent.generation, routed=False, blocked=step.why, service=name)
                case Nothing() if service is not None and isinstance(desired, Serve):
                    self._leads_to(desired.port)
                    if self._elsewhere:
                        # Another UI of this Pod follows: the former one's stop() may be waiting for this.
                        apart = others(service, self._settings)
                        self._elsewhere = not await self._slices.emptied(
                            name, service, desired.port, apart, reads=self._reads()
                        )
                    return Observed(
                        intent.generation, routed=step.exposed, service=name, elsewhere=self._elsewhere
                    )
                case Nothing() if not step.exposed:
                    self._port, self._elsewhere = 0, False
                    released = isinstance(desired, Release)
                    return Observed(intent.generation, routed=step.exposed, service=name, released=released)
                case Nothing():
                    if not await self._slices.emptied(name, service, reads=self._reads()):
                        return Observed(intent.generation, routed=True, service=name)
                    around = replace(around, empty=True)
                case _:
                    if isinstance(desired, Serve):
                        self._leads_to(desired.port, moves=isinstance(step, Patch) and step.moves)
                    service = await self._write(step, service)
                    around = replace(around, epoch="", exposed=False, empty=False)
        raise ApiError(0, OVERRULED, f"Service {name} is another than was written, {STEPS} times over")

    def _reads(self) -> int:
        """How often to look for endpoints in this pass."""
        return 1 if self._late else times.SLICE_READS

    def _leads_to(self, port: int, *, moves: bool = False) -> None:
        """The Service does, or may from now on; its endpoints may lag behind at what it led to before."""
        self._elsewhere = self._elsewhere or moves or self._port not in (0, port)
        self._port = port

    async def _write(self, step: Step, service: Json | None) -> Json | None:
        """Sends one step; what the Service is afterwards. Until the answer is here, the write may yet land."""
        fenced_off, self._fence = not self._fence, True
        self._slices.forget()
        self._kept = text(service, "metadata", "name") or self._settings.service
        try:
            match step:
                case Create():
                    service = await self._api.create_service(step.body)
                case Patch():
                    service = await self._api.patch_service(step.name, step.body)
                case Delete():
                    await self._api.delete_service(step.name, step.uid)
                    service = None
                case _:
                    raise AssertionError(step)
        except (UnreachableError, ServerError):
            raise  # kube-apiserver also answers 500 where etcd took too long, and the write may stand
        except NotFoundError as error:
            self._fence = False
            raise ConflictError(409, "Conflict", "the Service was deleted meanwhile") from error
        except ConflictError:
            self._fence = False  # another resourceVersion stands: what was in flight can't land any more
            raise
        except ApiError:
            self._fence = not fenced_off
            raise
        self._fence = False
        return service

    # --- what a plan needs to know ---------------------------------------------------------------------

    async def _around(self, service: Json | None) -> Around:
        around = await read_around(self._api, self._settings, self._pod, service)
        if self._first:
            marked = text(service, "metadata", "annotations", HOLDER) == self._settings.identity.holder
            # A write of a former life may still be on its way, also its first, which is to set the mark.
            self._fence = marked or self._former
            # And the endpoints may lag behind the write that stands.
            self._elsewhere = marked
        self._first = False
        exposed = False
        if service is not None and not at(service, "spec", "selector"):
            try:
                exposed = await self._slices.lead_here(text(service, "metadata", "name"))
            except ForbiddenError:
                exposed = True
        epoch = secrets.token_hex(4) if self._fence else ""
        return replace(around, epoch=epoch, exposed=exposed)
