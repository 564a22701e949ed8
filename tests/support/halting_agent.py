"""The agent, which waits for a line on stdin before it writes the driver's files. For tests of who waits for whom."""

from __future__ import annotations

import sys
from unittest.mock import patch

from agent.__main__ import main
from agent.act.volume import Installed, install
from agent.commands import start
from agent.settings import Settings


def halting(settings: Settings) -> Installed:
    """Write when told to."""
    print("writing", flush=True)
    sys.stdin.readline()
    return install(settings)


if __name__ == "__main__":
    with patch.object(start, "install", halting):
        sys.exit(main())
