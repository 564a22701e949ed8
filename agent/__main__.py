"""The program's entry: `spark-ui-agent`, or `python -m agent`."""

from __future__ import annotations

import os
import sys

from .turn import Turn


def main() -> int:
    """Runs the command of sys.argv with this process's environment; its exit code."""
    argv = sys.argv[1:]
    turn = Turn(os.environ.get("SPARK_UI_AGENT_DIR", ""))
    if argv == ["install-hook"]:
        if not turn.needless():
            turn.wait()
        if turn.needless():
            return 0
    elif argv in ([], ["run"]):
        turn.take()
    from .commands import main as command_line

    return command_line(argv, os.environ, turn.done)


if __name__ == "__main__":
    sys.exit(main())
