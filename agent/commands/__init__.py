"""The command line. Exit codes: 0 done, 1 refused or failed, 2 usage or settings, 3 time-out.

Only the standard library is imported here and in `running`, since `status`, `drain` and `install-hook` run in hooks
and probes.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from ..settings import SettingsError

DONE, FAILED, USAGE, TIMED_OUT = 0, 1, 2, 3
INTERRUPTED = 128 + signal.SIGINT  # as a shell has it

# What Spark puts first in the arguments of the container that it takes for its own (its image's entrypoint).
_SPARKS = ("driver", "executor")


def main(argv: Sequence[str], env: Mapping[str, str], installed: Callable[[], None] = lambda: None) -> int:
    """Runs one command; its exit code. Wrong usage raises SystemExit(2), as argparse does.

    `run` calls `installed` once the files for the driver stand, or can't.
    """
    if argv and argv[0] in _SPARKS:
        complain(
            f"started with Spark's own arguments ({argv[0]} ...): Spark took this container for its {argv[0]}; set "
            "spark.kubernetes.driver.podTemplateContainerName to the name of the driver's container in the Pod template"
        )
        return USAGE
    try:
        return _command(argv, env, installed)
    except SettingsError as error:
        for problem in error.problems:
            complain(problem)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


def _command(argv: Sequence[str], env: Mapping[str, str], installed: Callable[[], None]) -> int:
    if not argv or list(argv) == ["run"]:
        from .start import start

        return start(env, installed)
    from .usage import Command, parser

    args = parser().parse_args(argv)
    command: Command = args.command
    return command(args, env)


def complain(message: str, stream: TextIO | None = None) -> None:
    """One line for people on stderr."""
    print(f"spark-ui-agent: {message}", file=sys.stderr if stream is None else stream)
