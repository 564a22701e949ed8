"""A stand-in for kube-apiserver, its endpoint controllers and its garbage collector.

`StandIn` serves it over HTTP; `Store` and `Api` are the same without a socket. It claims nothing of its own:
what it answers is what kube-apiserver 1.36 answers, and the contract tests run against both.
"""

from sandbox.standin.access import Access
from sandbox.standin.api import Api
from sandbox.standin.faults import Answer, Delay, Drop, Fault, Faults, Hold, Silence, Truncate, When
from sandbox.standin.preconditions import DeleteOptions
from sandbox.standin.recording import Recorded, Recording
from sandbox.standin.request import Reply, Request
from sandbox.standin.selection import Selection
from sandbox.standin.standin import StandIn
from sandbox.standin.status import StatusError
from sandbox.standin.store import Store
from sandbox.standin.watching import Watch

__all__ = [
    "Access",
    "Answer",
    "Api",
    "Delay",
    "DeleteOptions",
    "Drop",
    "Fault",
    "Faults",
    "Hold",
    "Recorded",
    "Recording",
    "Reply",
    "Request",
    "Selection",
    "Silence",
    "StandIn",
    "StatusError",
    "Store",
    "Truncate",
    "Watch",
    "When",
]
