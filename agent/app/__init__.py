"""Wiring: facts go to `fold`, what follows goes to the reconciler and the rest, and everything is told.

All tasks live in one TaskGroup. Signals and requests only tell facts; nothing here looks into one.
"""

from .wiring import App, run

__all__ = ["App", "run"]
