"""The command line. Exit codes: 0 done, 1 refused or failed, 2 usage or settings, 3 time-out.

Only the standard library is imported here and in `running`, since `status`, `drain` and `install-hook` run in hooks
and probes.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from .. import __version__, times
from ..settings import SettingsError
from ..settings.values import seconds

DONE, FAILED, USAGE, TIMED_OUT = 0, 1, 2, 3
INTERRUPTED = 128 + signal.SIGINT  # as a shell has it

_LONGEST_WAIT = 3600.0
# What Spark puts first in the arguments of the container that it takes for its own (its image's entrypoint).
_SPARKS = ("driver", "executor")

Command = Callable[[argparse.Namespace, Mapping[str, str]], int]


def main(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Runs one command; its exit code. Wrong usage raises SystemExit(2), as argparse does."""
    if argv and argv[0] in _SPARKS:
        complain(
            f"started with Spark's own arguments ({argv[0]} ...): Spark took this container for its {argv[0]}; set "
            "spark.kubernetes.driver.podTemplateContainerName to the name of the driver's container in the Pod template"
        )
        return USAGE
    args = parser().parse_args(argv)
    command: Command = args.command
    try:
        return command(args, env)
    except SettingsError as error:
        for problem in error.problems:
            complain(problem)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


def complain(message: str, stream: TextIO | None = None) -> None:
    """One line for people on stderr."""
    print(f"spark-ui-agent: {message}", file=sys.stderr if stream is None else stream)


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

    return start(env)


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
