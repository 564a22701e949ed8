"""The program's entry: `spark-ui-agent`, or `python -m agent`."""

from __future__ import annotations

import os
import sys

from .commands import main as command_line


def main() -> int:
    """Runs the command of sys.argv with this process's environment; its exit code."""
    return command_line(sys.argv[1:], os.environ)


if __name__ == "__main__":
    sys.exit(main())
