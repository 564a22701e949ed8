"""The program's entry: `spark-ui-agent`, or `python -m agent`."""

from __future__ import annotations

import os
import sys

from .paths import DIR, INSTALLED_FILE, PROOF_FILE


def main() -> int:
    """Runs the command of sys.argv with this process's environment; its exit code."""
    # The driver's start waits for a postStart hook: where the agent beside it was faster, nothing is loaded.
    if sys.argv[1:] == ["install-hook"] and _nothing_to_do(
        os.environ.get("SPARK_UI_AGENT_DIR", "").strip() or DIR
    ):
        return 0
    from .commands import main as command_line

    return command_line(sys.argv[1:], os.environ)


def _nothing_to_do(directory: str) -> bool:
    """True when the driver's files stand and, as no UI was proven before, no restarted agent has to be waited for."""
    return os.access(f"{directory}/{INSTALLED_FILE}", os.F_OK) and not os.access(
        f"{directory}/{PROOF_FILE}", os.F_OK
    )


if __name__ == "__main__":
    sys.exit(main())
