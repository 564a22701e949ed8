"""One line of `check`."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Level(enum.StrEnum):
    """How much it matters."""

    OK = "ok"
    NOTE = "note"  # a feature is missing, the UI is published all the same
    PROBLEM = "problem"  # something needed is wrong


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, and what to do about it."""

    level: Level
    subject: str
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.level.value:<8} {self.subject}: {self.found}"
        return f"{text}; {self.remedy}" if self.remedy else text


def ok(subject: str, found: str) -> Finding:
    """As it should be."""
    return Finding(Level.OK, subject, found)


def note(subject: str, found: str, remedy: str = "") -> Finding:
    """Missing, and the UI is published all the same."""
    return Finding(Level.NOTE, subject, found, remedy)


def problem(subject: str, found: str, remedy: str) -> Finding:
    """Needed, and wrong."""
    return Finding(Level.PROBLEM, subject, found, remedy)
