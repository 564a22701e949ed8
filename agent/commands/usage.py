"""The commands and their options. argparse takes a twentieth of the agent's start, so `run` goes without it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

from .. import __version__, times
from ..settings.values import seconds

Command = Callable[[argparse.Namespace, Mapping[str, str]], int]

_LONGEST_WAIT = 3600.0


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = argparse.ArgumentParser(
        prog="spark-ui-agent",
        description="Keeps one Kubernetes Service pointing at the web UI that this Pod's Spark driver really bound.",
        epilog="Settings are environment variables, SPARK_UI_AGENT_...; see docs/settings.md.",
    )
    top.add_argument("--version", action="version", version=f"spark-ui-agent {__version__}")
    top.set_defaults(command=_run)
    commands = top.add_subparsers(title="commands", metavar="COMMAND")

    def add(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.set_defaults(command=command)
        return sub

    add("run", _run, "keep the Service until the driver has ended (the default)")
    add("check", _check, "say what is wrong with settings, rights, the API server, the Service or the hook")
    discover = add("discover", _discover, "list what listens in this Pod, and what each is taken for and why")
    discover.add_argument("--json", action="store_true", help="print one JSON object")
    status = add("status", _status, "print the running agent's state")
    status.add_argument("--json", action="store_true", help="print one JSON object")
    wait = add("wait", _wait, "wait until the UI is published, or parked")
    wait.add_argument("--for", dest="goal", choices=("published", "parked"), default="published")
    _add_timeout(wait, times.WAIT_DEFAULT)
    drain = add(
        "drain",
        _drain,
        "park the Service until the agent is started anew, and return once no endpoint leads here",
    )
    _add_timeout(drain, times.DRAIN_DEFAULT)
    add("install-hook", _install_hook, "write the log hook's files for the driver; the exit code is always 0")
    return top


def _add_timeout(sub: argparse.ArgumentParser, default: float) -> None:
    sub.add_argument(
        "--timeout",
        type=_time,
        default=default,
        metavar="S",
        help=f"seconds to wait (default {default:g})",
    )


def _time(text: str) -> float:
    try:
        return seconds(0.1, _LONGEST_WAIT)(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: {error}") from None


def _run(_args: argparse.Namespace, env: Mapping[str, str]) -> int:
    from .start import start

    return start(env, lambda: None)


def _check(_args: argparse.Namespace, env: Mapping[str, str]) -> int:
    from .check import check

    return check(env)


def _discover(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    from .discover import discover

    return discover(env, as_json=args.json)


def _status(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    from .running import status

    return status(env, as_json=args.json)


def _wait(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    from .running import wait

    return wait(env, goal=args.goal, timeout=args.timeout)


def _drain(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    from .running import drain

    return drain(env, timeout=args.timeout)


def _install_hook(_args: argparse.Namespace, env: Mapping[str, str]) -> int:
    from .hook import install_hook

    return install_hook(env)
