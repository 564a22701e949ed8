"""What a job tells in its log: see `sandbox.image.job`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.image.job import STEPS


@dataclass(frozen=True)
class Step:
    """A step that a job has done: when, in seconds of the epoch, and what came of it."""

    at: float
    name: str
    came: str


def steps_in(lines: Sequence[str]) -> list[Step]:
    """Return the steps that a job has told in its log, in order."""
    steps = []
    for line in lines:
        # the node's time, the job's own, the step, what came of it
        match line.split(maxsplit=3):
            case [_, own, name, *rest] if name in STEPS and _is_time(own):
                steps.append(Step(float(own), name, rest[0] if rest else ""))
    return steps


def steps_of(lines: Sequence[str]) -> dict[str, str]:
    """Return what came of each step, of the last one where a step was done twice."""
    return {step.name: step.came for step in steps_in(lines)}


def _is_time(word: str) -> bool:
    return word.replace(".", "", 1).isdecimal()
