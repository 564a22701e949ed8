"""The agent's status as others read it: a JSON object, and one line for people."""

from __future__ import annotations

from ..model import State, Status


def document(status: Status, since: str) -> dict[str, object]:
    """What /status and the control socket answer. `since` is when the state last changed (ISO 8601, UTC)."""
    return {
        "state": status.state.value,
        "reason": status.reason,
        "found": status.found,
        "remedy": status.remedy,
        "port": status.port,
        "scheme": status.scheme,
        "application": status.application,
        "proof": status.proof,
        "hook": status.hook,
        "service": status.service,
        "since": since,
    }


def line(status: Status) -> str:
    """State, reason and remedy in one line."""
    if status.state is State.PUBLISHED:
        return f"published: Service {status.service} leads to {status.scheme} port {status.port}"
    name = f"blocked({status.reason})" if status.state is State.BLOCKED else status.state.value
    text = f"{name}: {status.found}" if status.found else name
    wanted = status.remedy and not status.remedy.startswith("none needed")
    return " ".join(f"{text}; {status.remedy}".split()) if wanted else " ".join(text.split())
