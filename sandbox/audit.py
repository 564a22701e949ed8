"""kube-apiserver's own word on who asked it for what: its audit log, of ServiceAccounts only.

Written by the server itself, so that no client, recorder or watch can miss a call or invent one. The log's mode
is ``blocking`` (its default): a request is on file before it is handled, its outcome at the latest a moment
after its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
COMPLETE_SECONDS = 10.0
POLL_SECONDS = 0.02
HUNG_UP = "context canceled"  # what kube-apiserver notes, with 500, where the caller's connection has gone

# The controllers are ServiceAccounts too, those of kube-system: what they do is not asked for here.
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["ResponseStarted"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True)
class Call:
    """One request. ``at`` is when it was received (CLOCK_MONOTONIC, ns); ``name`` is empty for list and create.

    ``hung_up``: the caller did not wait for the answer; ``code`` is then 500 or 0, by how far the server had come.
    """

    at: int
    user: str
    verb: str
    resource: str
    name: str
    code: int
    dry_run: bool
    hung_up: bool

    @property
    def writes(self) -> bool:
        """Whether it was to change a stored object; reviews of one's own rights are posted, but change nothing."""
        return self.verb in WRITES and not self.dry_run and not self.resource.endswith("reviews")


def service_account_user(namespace: str, name: str) -> str:
    """Return the name under which a ServiceAccount is known to the server."""
    return f"system:serviceaccount:{namespace}:{name}"


def write_policy(path: Path) -> None:
    """Write the policy that kube-apiserver is to be started with; JSON is YAML."""
    path.write_text(json.dumps(POLICY))


async def calls(log: Path, user: str) -> list[Call]:
    """Return all calls of ``user`` so far, in order of arrival, once each of them has its outcome.

    Watches are told as they are: they may go on. TimeoutError when an outcome is missing for `COMPLETE_SECONDS`.
    """
    async with asyncio.timeout(COMPLETE_SECONDS):
        while True:
            found = _complete(_events(log.read_text().splitlines(), user))
            if found is not None:
                return found
            await asyncio.sleep(POLL_SECONDS)


def _events(lines: Iterable[str], user: str) -> list[dict[str, Any]]:
    events = []
    for line in lines:
        if user not in line:
            continue
        # the last line may be half written
        with contextlib.suppress(ValueError):
            event = json.loads(line)
            if event["user"]["username"] == user:
                events.append(event)
    return events


def _complete(events: list[dict[str, Any]]) -> list[Call] | None:
    received = {event["auditID"]: event for event in events if event["stage"] == "RequestReceived"}
    ended = {event["auditID"]: event for event in events if event["stage"] in {"ResponseComplete", "Panic"}}
    if any(event["verb"] != "watch" and number not in ended for number, event in received.items()):
        return None
    to_monotonic = time.monotonic_ns() - time.time_ns()
    return sorted(
        (_call(event, ended.get(number, {}), to_monotonic) for number, event in received.items()),
        key=lambda call: call.at,
    )


def _call(received: dict[str, Any], ended: dict[str, Any], to_monotonic: int) -> Call:
    target = received.get("objectRef", {})
    arrived = datetime.fromisoformat(received["requestReceivedTimestamp"])
    subresource = target.get("subresource", "")
    status = ended.get("responseStatus", {})
    return Call(
        at=round(arrived.timestamp() * 1e6) * 1000 + to_monotonic,
        user=received["user"]["username"],
        verb=received["verb"],
        resource=target.get("resource", "") + (f"/{subresource}" if subresource else ""),
        name=target.get("name", ""),
        code=status.get("code", 0),
        dry_run=bool(parse_qs(urlsplit(received["requestURI"]).query).get("dryRun")),
        hung_up="code" not in status or status.get("message") == HUNG_UP,
    )
