"""The values that flow through the agent: facts in, one Desired out, one Observed back.

Nothing here does I/O or reads a clock. Sources *tell* facts, `agent.decide.desired` folds them into one
`Intent`, the reconciler makes the Service equal to it and answers with one `Observed`.
"""

from __future__ import annotations

from .errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    ThrottledError,
    UnauthorizedError,
    UnreachableError,
)
from .facts import (
    Answered,
    Closed,
    Draining,
    DriverEnded,
    Fact,
    HookBound,
    HookReady,
    HookStopping,
    Misconfigured,
    Observed,
    Scanned,
    Trouble,
)
from .listeners import Answer, Listener, Question, Said, Scheme, Taken, Verdict
from .world import Desired, HookState, Intent, Park, Proof, Release, Serve, State, Status, Ui, World

__all__ = [
    "AlreadyExistsError",
    "Answer",
    "Answered",
    "ApiError",
    "Closed",
    "ConflictError",
    "Desired",
    "Draining",
    "DriverEnded",
    "Fact",
    "ForbiddenError",
    "HookBound",
    "HookReady",
    "HookState",
    "HookStopping",
    "Intent",
    "InvalidError",
    "Listener",
    "Misconfigured",
    "NotFoundError",
    "Observed",
    "Park",
    "Proof",
    "Question",
    "Release",
    "Said",
    "Scanned",
    "Scheme",
    "Serve",
    "ServerError",
    "State",
    "Status",
    "Taken",
    "ThrottledError",
    "Trouble",
    "Ui",
    "UnauthorizedError",
    "UnreachableError",
    "Verdict",
    "World",
]
