"""The agent with a fault: it parks when the driver says "stopping", but answers at once. For tests of the tests."""

from __future__ import annotations

import sys
from unittest.mock import patch

from agent.__main__ import main
from agent.app import wiring
from agent.model import World


def at_once(_world: World, _pid: int) -> bool:
    """Whatever still leads to the UI: it may close."""
    return True


if __name__ == "__main__":
    with patch.object(wiring, "withdrawn", at_once):
        sys.exit(main())
