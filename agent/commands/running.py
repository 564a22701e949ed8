"""`status`, `wait` and `drain`: what the running agent is asked. Standard library alone."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

from .. import times
from ..settings import control_socket
from ..tell.client import NoAgentError, RefusedError, ask
from . import DONE, FAILED, TIMED_OUT, complain

# States that meet a goal of `wait`, and those from which it can't be met any more.
_MET = {"published": ("published",), "parked": ("parked", "done")}
_HOPELESS = {"published": ("done",), "parked": ()}
_FOR_GOOD = ("draining", "driver-ended")  # reasons of a drain after which nothing is published again


def status(env: Mapping[str, str], *, as_json: bool) -> int:
    """Prints the agent's state. Raises SettingsError."""
    try:
        found = ask(control_socket(env), "status", times.CONTROL_REQUEST)
    except (NoAgentError, RefusedError) as error:
        complain(str(error))
        return FAILED
    except TimeoutError:
        complain(_silent(control_socket(env), times.CONTROL_REQUEST))
        return TIMED_OUT
    print(json.dumps(found) if as_json else table(found))
    return DONE


def wait(env: Mapping[str, str], *, goal: str, timeout: float) -> int:
    """Waits for a state, also for an agent that is not there yet. Raises SettingsError."""
    path = control_socket(env)
    deadline = time.monotonic() + timeout
    last = "nothing was heard from the agent"
    while (left := deadline - time.monotonic()) > 0:
        try:
            found = ask(path, "status", min(left, times.CONTROL_REQUEST))
        except NoAgentError as error:
            last = str(error)
        except TimeoutError:
            last = _silent(path, times.CONTROL_REQUEST)
        except RefusedError as error:
            complain(str(error))
            return FAILED
        else:
            last = summary(found)
            if found.get("state") in _MET[goal]:
                print(last)
                return DONE
            if found.get("state") in _HOPELESS[goal] or (
                goal == "published" and found.get("state") == "draining" and found.get("reason") in _FOR_GOOD
            ):
                complain(f"will not be {goal} any more: {last}")
                return FAILED
        time.sleep(max(0.0, min(times.WAIT_POLL, deadline - time.monotonic())))
    complain(f"not {goal} within {timeout:g} s: {last}")
    return TIMED_OUT


def drain(env: Mapping[str, str], *, timeout: float) -> int:
    """Parks, for the rest of this agent's life, and waits until nothing leads here. Raises SettingsError."""
    path = control_socket(env)
    try:
        found = ask(path, "drain", timeout + times.CONTROL_SPARE, timeout=timeout)
    except (NoAgentError, RefusedError) as error:
        complain(str(error))
        return FAILED
    except TimeoutError:
        complain(_silent(path, timeout + times.CONTROL_SPARE))
        return TIMED_OUT
    if found.get("gone") is not True:
        complain("parking, but endpoints may still lead here; the agent keeps trying")
        return TIMED_OUT
    print("parked: no endpoint of the Service leads to this Pod")
    return DONE


def summary(found: Mapping[str, object]) -> str:
    """State, what was found and the remedy, in one line."""
    reason = f"({found['reason']})" if found.get("state") == "blocked" else ""
    parts = [f"{found.get('state')}{reason}"]
    if found.get("port"):
        parts.append(f"{found.get('scheme')} port {found['port']}")
    parts += [str(found[key]) for key in ("found", "remedy") if found.get(key)]
    return "; ".join(parts)


def table(found: Mapping[str, object]) -> str:
    """One line for each thing that is known."""
    rows = [(key, found.get(key)) for key in found]
    width = max((len(key) for key, _ in rows), default=0)
    return "\n".join(f"{key:<{width}}  {value}" for key, value in rows if value not in (None, ""))


def _silent(path: Path, timeout: float) -> str:
    return f"the agent at {path} gave no answer within {timeout:g} s; its log may tell why"
