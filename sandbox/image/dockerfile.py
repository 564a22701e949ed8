"""The part of Dockerfile syntax that this project's Dockerfile uses, read into stages of instructions."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

# what `sandbox.image.build` knows how to do
KNOWN = ("ARG", "FROM", "WORKDIR", "COPY", "ENV", "RUN", "LABEL", "USER", "ENTRYPOINT")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class DockerfileError(Exception):
    """The file says something that is not understood here; the message names the line's instruction."""


@dataclass(frozen=True)
class Instruction:
    """One instruction, its lines joined: ``COPY``, ``--from=build a b``."""

    word: str
    rest: str

    def words(self) -> list[str]:
        """Return the arguments, split as a shell does."""
        return shlex.split(self.rest)

    def pairs(self) -> dict[str, str]:
        """Return the ``name=value`` arguments of ENV and LABEL."""
        pairs = [word.partition("=") for word in self.words()]
        if not all(equals for _, equals, _ in pairs):
            raise DockerfileError(f"{self.word} {self.rest}: expected name=value")
        return {name: value for name, _, value in pairs}

    def argv(self) -> list[str]:
        """Return the JSON array of ENTRYPOINT in its exec form."""
        try:
            argv: object = json.loads(self.rest)
        except ValueError:
            argv = None
        if not isinstance(argv, list):
            raise DockerfileError(f"{self.word} {self.rest}: expected a JSON array")
        return [str(one) for one in argv]


@dataclass
class Stage:
    """What stands between two FROMs: its name, the image it starts from, and what is done there."""

    name: str
    base: str
    instructions: list[Instruction] = field(default_factory=list)


def parse(text: str, arguments: Mapping[str, str]) -> list[Stage]:
    """Return the stages of a Dockerfile; ``arguments`` win over the ARGs that it declares before its first FROM.

    Raises `DockerfileError` for an instruction that is not `KNOWN` or stands where it is not understood.
    """
    values: dict[str, str] = {}
    stages: list[Stage] = []
    for instruction in _instructions(text):
        if instruction.word not in KNOWN:
            raise DockerfileError(f"{instruction.word}: only {', '.join(KNOWN)} are understood here")
        if instruction.word == "ARG":
            if stages:
                raise DockerfileError(
                    f"ARG {instruction.rest} stands after the first FROM: expected before it"
                )
            name, _, default = instruction.rest.partition("=")
            values[name] = arguments.get(name, default)
        elif instruction.word == "FROM":
            base, *named = _filled(instruction.rest, values).split()
            stages.append(Stage(named[1] if len(named) == 2 else "", base))
        elif not stages:
            raise DockerfileError(f"{instruction.word} stands before the first FROM")
        else:
            stages[-1].instructions.append(instruction)
    return stages


def _instructions(text: str) -> Iterator[Instruction]:
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in lines.replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word:
            yield Instruction(word.upper(), rest.strip())


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: values.get(found[1], ""), text)
